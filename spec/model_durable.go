package spec

import (
	"time"

	"github.com/topogen/topogen/spec/finding"
)

// Durable is the durable section, with its defaults filled in: the store that keeps the
// messages of durable edges until their handlers have returned.
type Durable struct {
	Store    Text          // a folder, or the URL of a server; "" with Raft
	Raft     Text          // the name of the processor on whose nodes the store is replicated; "" for none
	RaftTo   int           // its index, -1 for none
	Lease    time.Duration // 30s by default
	Listen   Text          // host:port; "" for none
	TLS      *TLS
	Insecure bool // listen without TLS even for other hosts
	At       finding.Range
	Pointer  string
}

// Limit bounds the executions of a durable edge in a process. It has Concurrency or Rate or
// both.
type Limit struct {
	Concurrency int  // executions that run at the same time; 0: not limited
	Rate        Rate // executions that begin; the zero Rate: not limited
	Per         Text // the field or method whose values have separate limits; "": all share one
	At          finding.Range
	Pointer     string
}

// Rate is a number of events in a time.
type Rate struct {
	Count int
	Every time.Duration
}
