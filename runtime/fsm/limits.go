package fsm

import (
	"fmt"
	"strings"
	"time"
)

// Options are the limits of a [Replicated]. All of them except ReplayMax and
// NoChecksums affect how entries are applied. So they must be the same on every replica
// for as long as the log exists, and a snapshot with other limits is refused. 0 means
// the default.
type Options struct {
	Sessions   int           // of clients; opening another one is refused while all were used within SessionTTL
	SessionTTL time.Duration // how long an unused session of a client is kept, by the log's time
	Window     int           // how many sequences, starting at its floor, a client may use
	Results    int           // remembered for all clients together; a result of more than 64 bytes counts as several
	Upcoming   int           // updates that are not committed
	ReplayMax  int           // entries between two checkpoints; an update that panics makes a replica apply them again

	NoChecksums bool // do not compare the state with the checksums in the log
}

// The defaults.
const (
	sessionsDefault = 10_000    // as many programs and processors as use one state machine
	windowDefault   = 4096      // pending commands of one client
	resultsDefault  = 1 << 20   // of 32 bytes and the value, so all together take 32 MiB and the values
	upcomingDefault = 1 << 20   // a controller that never commits is stopped before the memory is full
	replayDefault   = 100_000   // less than a second at 100 updates per entry
	replayBytesMin  = 8 << 20   // and at most twice the state, so that checkpoints cost a fraction of the entries
	largeBytes      = 64 << 20  // a state of this size has no checkpoint in memory while there is a snapshot on the disk
	replayBytesMax  = 1 << 30   // of entries after a snapshot on the disk; the next snapshot is taken after a third of that
	indexMax        = 1<<44 - 1 // the bits of a session's number that are left for the index: 500 years at 1,000 entries per second
	failureTextMax  = 256       // remembered bytes of an error's text
	ttlDefault      = time.Hour // longer than a client takes to start again
	resultBytesMax  = 64 << 10  // bytes of an update's value: each node remembers it until the client has it; a larger result can be read from the state
)

// The limits of sessions.
const (
	clientNameMax     = 64      // bytes of a client's name, such as a host, a program and an instance
	sessionsPerClient = 4       // a restarted client opens another session, and may not have ended its previous session
	sessionsPerNode   = 2       // the session of this start, and another session that a late message of the previous start opens
	nodeSessionsMax   = 256     // of all nodes that were ever in the group: at most 64 of them are members
	sessionGaps       = 8       // a gap in the log's time counts as at most this part of SessionTTL, so a clock that jumps ends no session
	sessionSizeMax    = 1 << 20 // results of one session: 64 MiB of values
	resultBytes       = 64      // bytes of a value that count as one more result
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

// replicated returns the options that must be the same on all replicas. The last one is
// not in snapshots of version 1 and 2.
func (o Options) replicated() [5]limit {
	return [5]limit{
		{"Sessions", uint64(o.Sessions)}, {"Window", uint64(o.Window)}, {"Results", uint64(o.Results)}, {"Upcoming", uint64(o.Upcoming)},
		{"SessionTTL", uint64(o.SessionTTL)},
	}
}

// describe returns a line of the description for each of them.
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
