package fsm

// Options are the limits of a [Replicated]. Sessions, Window, Results and Upcoming
// are part of what entries mean: they are the same on every replica, and as long as
// the log lives.
type Options struct {
	Sessions  int // clients that are remembered; default SessionsDefault
	Window    int // sequences from a client's floor on that it may use; default WindowDefault
	Results   int // results that are remembered, of all clients; default ResultsDefault
	Upcoming  int // updates that are not committed; default UpcomingDefault
	ReplayMax int // entries between two checkpoints, see Replicated; default ReplayDefault
}

// Replicated applies the entries of a log to a state.
type Replicated[S, U any, P Updater[S, U]] struct {
	state Codec[S]
}

// NewReplicated returns one with the zero state, before any entry.
func NewReplicated[S, U any, P Updater[S, U]](state Codec[S], update Codec[U], o Options) *Replicated[S, U, P] {
	return &Replicated[S, U, P]{state: state}
}

// Apply applies the commands of an entry.
func (r *Replicated[S, U, P]) Apply(index, term uint64, data []byte, result func(client, sequence uint64, a Applied)) error {
	panic("not yet")
}

// AppendSnapshot appends all that is to be known after the last entry.
func (r *Replicated[S, U, P]) AppendSnapshot(b []byte) ([]byte, error) { panic("not yet") }

// Restore replaces everything by a snapshot; after an error nothing has changed.
func (r *Replicated[S, U, P]) Restore(b []byte) error { panic("not yet") }

// View calls f with the state.
func (r *Replicated[S, U, P]) View(f func(*S)) { panic("not yet") }

// Applied returns the index of the last entry.
func (r *Replicated[S, U, P]) Applied() uint64 { return 0 }

// Upcoming returns copies of the updates that are not committed.
func (r *Replicated[S, U, P]) Upcoming() []U { return nil }
