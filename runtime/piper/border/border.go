// Package border carries messages over the border of a node: an [Outlet] encodes messages of
// links to instances of other nodes, and [Arrivals] decode the messages of their instances
// into the queues of this node. Only programs whose topology has a cluster section link it.
//
// A [Border] connects a [piper.Pool] with [Nodes], which package cluster implements. Users
// need neither; generated code calls the functions of this package.
package border

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/piper"
)

// Nodes connects a topology with the same topology on the other nodes of a cluster. Package
// cluster implements it. Its methods may be called from any goroutine of the pool, and
// must not wait, with the exception of Begin and End.
type Nodes interface {
	// Begin is called by Run, before anything else. It calls Border.Place when it is
	// known which instances this node runs.
	Begin(ctx context.Context, b *Border) error
	// Find reports whether a name is that of this node, and whether a node with this name takes
	// part in the topology.
	Find(node string) (here, known bool)
	// Others is how many other nodes take part in the topology.
	Others() int
	// Forward takes messages for an instance of another node.
	Forward(o *Outlet, c Chunk)
	// Handled reports that the first n messages of a were handled, or were dropped because
	// they cannot be decoded. Their node need not keep them any longer.
	Handled(a *Arrivals, n uint64)
	// Reply sends the reply to a call, or its error.
	Reply(a *Arrivals, call Call, reply []byte, err error)
	// Quiet reports that a group has nothing to do on this node. It waits for
	// Border.Agree.
	Quiet(group int)
	// Full reports that a queue within a group is full. It is not called again until Border.IsFull has
	// returned false.
	Full(group int)
	// FencingToken is that of an instance for this process; 0 before Place.
	FencingToken(processor, instance int) uint64
	// Stopping reports that the context of Run has ended: this node begins to drain.
	Stopping()
	// End is called before Run returns, with its error. After End, no other method is
	// called.
	End(err error)
}

// Border is the border of a node of a cluster. Nodes calls its methods.
type Border struct {
	piper.Interior
	nodes   Nodes
	remotes [][]atomic.Pointer[remoteInstance] // by processor and instance; nil if no message to the instance was settled

	guestsMu sync.Mutex
	guests   map[GuestKey]*guest // instances of other nodes that have sent messages to this one
}

// New makes the Border of a pool. Generated code returns it from Spec.Cluster.
func New(nodes Nodes) *Border { return &Border{nodes: nodes, guests: make(map[GuestKey]*guest)} }

// UseNodes sets Nodes in place of those of the topology file. Tests of generated code connect
// the nodes of one process with it.
func UseNodes(nodes Nodes) piper.Option {
	return piper.UseBorder(func() piper.Border { return New(nodes) })
}

// Attach implements piper.Border.
func (b *Border) Attach(in piper.Interior) { b.Interior = in }

// Begin implements piper.Border.
func (b *Border) Begin(ctx context.Context) error { return b.nodes.Begin(ctx, b) }

// Quiet implements piper.Border.
func (b *Border) Quiet(group int) { b.nodes.Quiet(group) }

// Full implements piper.Border.
func (b *Border) Full(group int) { b.nodes.Full(group) }

// Stopping implements piper.Border.
func (b *Border) Stopping() { b.nodes.Stopping() }

// FencingToken implements piper.Border.
func (b *Border) FencingToken(u *piper.Unit) uint64 {
	return b.nodes.FencingToken(u.Processor(), u.Index())
}

// End implements piper.Border.
func (b *Border) End(err error) { b.nodes.End(err) }

// Place constructs the instances that this node runs. All others run on other nodes.
// Nodes.Begin calls it once, before the instances are initialized.
func (b *Border) Place(isHere func(processor, instance int) bool) error {
	b.remotes = make([][]atomic.Pointer[remoteInstance], b.Processors())
	for i := range b.remotes {
		b.remotes[i] = make([]atomic.Pointer[remoteInstance], len(b.Units(i)))
	}
	return b.Interior.Place(isHere)
}

// IsIdle reports whether nothing is left to do on this node until a message comes from
// another node: no message is queued, and no call runs. Nodes calls it while the node
// leaves the cluster, after the sources of this node have ended.
func (b *Border) IsIdle() bool { return b.Interior.IsIdle(b.guestsBusy) }

// guestsBusy reports whether messages of other nodes wait to be decoded, or are not visible
// yet.
func (b *Border) guestsBusy() bool {
	b.guestsMu.Lock()
	defer b.guestsMu.Unlock()
	for _, g := range b.guests {
		if g.waiting.Load() > 0 || g.unit.HasUnpublished() { // in this order: a message is in its queue before it does not wait any more
			return true
		}
	}
	return false
}

// OnAllOthers is the ToInstance of a Pair whose messages go to all instances of the
// processor on all other nodes.
const OnAllOthers = -1

// of returns the Border of a pool, or nil if the pool runs the whole topology.
func of(b piper.Border) *Border {
	x, _ := b.(*Border)
	return x
}

// Everywhere is the number of links that a message to all instances of a processor needs,
// of which this node has n. In a cluster there is one more: to all other nodes.
func Everywhere(o *piper.Out, n int) int { return of(o.Border()).links(n) }

// EverywhereFrom is Everywhere for messages from outside.
func EverywhereFrom(x *piper.External, n int) int { return of(x.Border()).links(n) }

func (b *Border) links(n int) int {
	if b == nil {
		return n
	}
	return n + 1
}

// GatherEverywhere begins a call along links to the instances of this node. In a cluster
// there is one link more: to those of all other nodes.
func GatherEverywhere[R any](x *piper.External, instances int) *piper.Gathering[R] {
	g := piper.Gather[R](EverywhereFrom(x, instances))
	if b := of(x.Border()); b != nil {
		g.Assume(instances, b.nodes.Others()*instances) // until it is known how many get the request
	}
	return g
}
