package fsm

// Options are the limits of a [Replicated]. All but ReplayMax decide what entries
// mean: they are the same on every replica and as long as the log lives, and a
// snapshot made under others is refused. 0 stands for the default.
type Options struct {
	Sessions  int // clients that are remembered
	Window    int // how many sequences, from its floor on, a client may use
	Results   int // results that are remembered, of all clients; at least Window
	Upcoming  int // updates that are not committed
	ReplayMax int // entries between two checkpoints, which are what an update that fails costs
}

// The defaults.
const (
	sessionsDefault = 10_000    // as many programs and processors as use one machine
	windowDefault   = 4096      // what one of them has under way at once
	resultsDefault  = 1 << 20   // of 32 bytes and what updates return, so that all together take 32 MiB and that
	upcomingDefault = 1 << 20   // a controller that never commits is stopped before the memory is full
	replayDefault   = 100_000   // less than a second, at 100 updates an entry
	replayBytesMin  = 8 << 20   // and no more than twice the state, which makes the checkpoints cost a fraction of the entries
	indexMax        = 1<<44 - 1 // what a client's number leaves for the index: 500 years at 1,000 entries a second
	failureTextMax  = 256       // bytes that are remembered of an error's text
	resultBytesMax  = 64 << 10  // of what an update returns: each node remembers it until the client has it, and what is larger can be read
)

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value     *int
		otherwise int
	}{
		{&o.Sessions, sessionsDefault},
		{&o.Window, windowDefault},
		{&o.Results, resultsDefault},
		{&o.Upcoming, upcomingDefault},
		{&o.ReplayMax, replayDefault},
	} {
		if *d.value <= 0 {
			*d.value = d.otherwise
		}
	}
	o.Results = max(o.Results, o.Window)
	return o
}

// meaning are the options that have to agree.
func (o Options) meaning() [4]int { return [4]int{o.Sessions, o.Window, o.Results, o.Upcoming} }
