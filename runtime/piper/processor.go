package piper

import (
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// Processor describes one processor for New.
type Processor struct {
	Name     string
	Group    int // index of its strongly connected component; upstream components come first
	Blocking bool
	External bool
	Ping     bool // the processor has the method
	Serve    bool
	Finish   bool
	Stays    bool   // the processor is used from outside, so its group is open until the context of Run ends
	Events   bool   // gets the events of its inputs
	Watch    *Watch // nil if an instance that fails ends the topology

	// Instances is the number of instances, 0 for an external processor. Instance returns the
	// parts of one. If value is true, it first makes the value of the processor's type.
	Instances int
	Instance  func(in topo.Instance, value bool) (Parts, error)

	// Others says that the last instance stands for all instances of other nodes: the
	// processor has the same instances on each node. Messages to it go to all other nodes.
	// Outside of a cluster it gets none.
	Others bool

	// Guest makes the parts of an instance without a value, which stands for one of another
	// node. It is nil if no instance sends messages to other nodes.
	Guest func() Parts
}

// Edge describes one edge for New.
type Edge struct {
	From, To int // indices of processors; From is -1 for a timer
	Message  string
	Capacity int
	Full     Policy        // Wait pauses the sending instance; the other policies do not
	Every    time.Duration // period of a timer
	Durable  bool          // a store keeps its messages; no link carries them

	// In a cluster:
	Reply      bool // the sender waits for a reply
	Aimed      bool // each message goes to one instance of a processor that has Others
	AtMostOnce bool // a message is not sent again after a lost connection
	Stays      bool // from an external processor: messages never go to another node, so a client cannot send them
}

type processor struct {
	Processor
	pool           *Pool
	index          int
	group          *group
	receives       bool // at least one edge leads to the processor
	units          []*Unit
	longCalls      atomic.Int32 // number of calls that the monitor found long, until calls are quick again
	quickTurns     atomic.Int32 // number of consecutive quick turns outside the pool
	first          int          // index of its first instance in rebalancer.units
	warned         atomic.Bool
	pendingReplies atomic.Int64 // calls of BeginReply minus calls of EndReply
	holds          atomic.Int64 // number of unreleased holds (topo.Hold)
	inputs         []*Inputs    // by instance, if Events
	watches        []*watch     // by instance, if Watch is not nil
	faults         *faults      // if Events, or Watch is not nil
	wakeups        []wakeup     // by instance, if Events, or Watch is not nil
	crossLog       repeated     // about messages between nodes that cannot be encoded or decoded
	guest          bool         // its only unit is a guest
	contexts       contexts
}

type edge struct {
	Edge
	inCycle                          bool
	refused                          atomic.Uint64 // messages whose route returned no valid instance
	discarded                        atomic.Uint64 // messages that were taken by an instance that is not restarted
	late                             atomic.Uint64 // messages sent after the call of the sender had ended
	goneSent, goneTaken, goneDropped atomic.Uint64 // counts of links that were released
	closed                           atomic.Bool   // the edge carries no more messages; EventClosed was or will be posted
}
