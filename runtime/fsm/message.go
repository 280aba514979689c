package fsm

// Updater is what an update type is to its machine: U is the user's type, and *U
// has the methods.
//
// Update changes the state. It is called once on each replica, with the same
// result on each: it depends on the update and the state alone, so on no clock, no
// randomness and no order of a map. An error means that the state is unchanged: all
// conditions are checked before anything is changed. The update is valid until the
// call returns; what it refers to may be kept in the state.
//
// Revert undoes what Update did, in a machine whose updates are committed by
// messages ([Updates], [Commit], [Revert]). It is called on the update that
// Update was called on, so Update may leave in it what Revert needs; with a log
// only what the update's codec keeps.
type Updater[S, U any] interface {
	*U
	Update(*S) error
	Revert(*S) error
}

// timed is an update that wants to know when and where it happens: its UpdateAt
// is called instead of Update.
type timed[S any] interface {
	UpdateAt(*S, Entry) error
}

// Entry says where an update stands in the log. An update type with the method
// UpdateAt(*S, Entry) error has it called in place of Update.
type Entry struct {
	Index    uint64 // of the log's entry; in memory the update's own number
	Position int    // of the update in the entry, from 0
	Time     int64  // the proposer's wall clock in Unix nanoseconds; never less than that of the update before
}

// Proposal asks a machine to apply and commit an update, and for its [Outcome].
type Proposal[U any] struct {
	Proposer int // instance of the controller, to which the outcome goes
	Update   U
}

// Outcome answers a [Proposal].
type Outcome[U any] struct {
	Proposer int
	Update   U // as it was proposed
	Applied
}

// Applied is what became of a command.
type Applied struct {
	Index  uint64 // of the log's entry; in memory the update's number, 0 where it failed
	Term   uint64 // of the log's entry; 0 in memory
	Client uint64 // of a session that was opened: the client's number
	Err    error  // nil: applied; else nothing has changed
}

// Updates adds updates to a machine, which applies them and commits them when
// [Commit] comes: FSMUpdatesMessage of rast.md 2.15.
type Updates[U any] struct{ Updates []U }

// Commit commits all updates that a machine has got, applied yet or not:
// FSMCommitMessage.
type Commit struct{}

// GetUpcoming asks a machine for the updates that are not committed:
// GetFSMUpcomingUpdateMessage. The answer is an [Upcoming].
type GetUpcoming struct{ Proposer int } // instance of the controller, to which the answer goes

// Revert drops all updates that are not committed, and undoes those that were
// applied, newest first: FSMUpcomingRevertMessage.
type Revert struct{}

// Upcoming answers [GetUpcoming], oldest first. The updates are copies, made by
// the update's method Clone where it has one; else what they point to is shared
// with the machine and only to be read.
type Upcoming[U any] struct {
	Proposer int
	Updates  []U
}
