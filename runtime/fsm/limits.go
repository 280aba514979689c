package fsm

import (
	"fmt"
	"strings"
	"time"
)

// Options are the limits of a [Replicated]. All but ReplayMax and NoChecksums decide what entries
// mean: they are the same on every replica and as long as the log lives, and a
// snapshot made under others is refused. 0 stands for the default.
type Options struct {
	Sessions   int           // of clients that are remembered; there is none for another while all were used within SessionTTL
	SessionTTL time.Duration // how long a client's session is remembered that is not used, by the log's time
	Window     int           // how many sequences, from its floor on, a client may use
	Results    int           // that all clients together may have remembered; one of more than 64 bytes counts for several
	Upcoming   int           // updates that are not committed
	ReplayMax  int           // entries between two checkpoints, which are what an update that panics costs

	NoChecksums bool // the state is not compared with the checksums in the log
}

// The defaults.
const (
	sessionsDefault = 10_000    // as many programs and processors as use one machine
	windowDefault   = 4096      // what one of them has under way at once
	resultsDefault  = 1 << 20   // of 32 bytes and what updates return, so that all together take 32 MiB and that
	upcomingDefault = 1 << 20   // a controller that never commits is stopped before the memory is full
	replayDefault   = 100_000   // less than a second, at 100 updates an entry
	replayBytesMin  = 8 << 20   // and no more than twice the state, which makes the checkpoints cost a fraction of the entries
	largeBytes      = 64 << 20  // of a state from which on no checkpoint is made of it in memory, while there is a snapshot on the disk
	replayBytesMax  = 1 << 30   // of entries behind a snapshot on the disk, which is taken after a third of that
	indexMax        = 1<<44 - 1 // what a client's number leaves for the index: 500 years at 1,000 entries a second
	failureTextMax  = 256       // bytes that are remembered of an error's text
	ttlDefault      = time.Hour // longer than a client takes to start again
	resultBytesMax  = 64 << 10  // of what an update returns: each node remembers it until the client has it, and what is larger can be read
)

// The limits of sessions.
const (
	clientNameMax     = 64      // bytes of a client's name: such as a host, a program and an instance
	sessionsPerClient = 4       // at once: a client that starts again opens another, and may not have ended the one before
	sessionsPerNode   = 2       // at once: the one of this start, and one that a late message of the start before opens
	nodeSessionsMax   = 256     // of all nodes that the group ever had: at most 64 of them are members
	sessionGaps       = 8       // a gap in the log's time counts as this part of SessionTTL at most, so a clock that jumps ends no session
	sessionSizeMax    = 1 << 20 // of the results of one: 64 MiB of what updates return
	resultBytes       = 64      // of a result that counts as one more
)

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value    *int
		fallback int
	}{
		{&o.Sessions, sessionsDefault},
		{&o.Window, windowDefault},
		{&o.Results, resultsDefault},
		{&o.Upcoming, upcomingDefault},
		{&o.ReplayMax, replayDefault},
	} {
		if *d.value <= 0 {
			*d.value = d.fallback
		}
	}
	if o.SessionTTL <= 0 {
		o.SessionTTL = ttlDefault
	}
	o.Results = max(o.Results, o.Window)
	return o
}

// meaning are the options that have to agree, by name. The last is in no snapshot of
// version 1 or 2.
func (o Options) replicated() [5]limit {
	return [5]limit{
		{"Sessions", uint64(o.Sessions)}, {"Window", uint64(o.Window)}, {"Results", uint64(o.Results)}, {"Upcoming", uint64(o.Upcoming)},
		{"SessionTTL", uint64(o.SessionTTL)},
	}
}

// describe is a line for each of them.
func (o Options) describe() string {
	var b strings.Builder
	for _, l := range o.replicated() {
		fmt.Fprintf(&b, "limit %s %d\n", l.name, l.value)
	}
	return b.String()
}

const limitsMax = 1 << 10 // bytes of these lines

type limit struct {
	name  string
	value uint64
}
