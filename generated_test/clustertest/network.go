package clustertest

import (
	"context"
	"slices"
	"sync"

	"github.com/topogen/topogen/runtime/piper"
)

// network connects the nodes.
type network struct {
	place  Place
	nodes  []*node
	begun  barrier // all pools are known
	placed barrier // all nodes have their instances
	quiet  chan struct{}
}

// node is one node. It implements piper.Nodes.
type node struct {
	net   *network
	index int
	pool  *piper.Pool
}

// stream is a link from one node to another one, or to all others.
type stream struct {
	outlet *piper.Outlet

	mu      sync.Mutex
	ends    []*end
	settled uint64
}

// end is the end of a stream on one node.
type end struct {
	stream        *stream
	arrivals      *piper.Arrivals
	handled, lost uint64
}

// settle settles the messages that have been handled or lost at all ends.
func (s *stream) settle(change func()) {
	s.mu.Lock()
	change()
	n := s.ends[0].handled + s.ends[0].lost
	lost := uint64(0)
	for _, e := range s.ends {
		n = min(n, e.handled+e.lost)
		lost += e.lost
	}
	more := n - s.settled
	s.settled = n
	s.mu.Unlock()
	if more == 0 {
		return
	}
	var err error
	if lost > 0 {
		err = errLost
	}
	s.outlet.Settle(int(more), err)
}

// barrier waits until all nodes have reached it.
type barrier struct {
	mu      sync.Mutex
	missing int
	reached chan struct{}
}

func newNetwork(n int, place Place) *network {
	net := &network{place: place, quiet: make(chan struct{}, 1)}
	for i := range n {
		net.nodes = append(net.nodes, &node{net: net, index: i})
	}
	net.begun = barrier{missing: n, reached: make(chan struct{})}
	net.placed = barrier{missing: n, reached: make(chan struct{})}
	return net
}

func (b *barrier) wait(ctx context.Context) error {
	b.mu.Lock()
	if b.missing--; b.missing == 0 {
		close(b.reached)
	}
	b.mu.Unlock()
	select {
	case <-b.reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// home is the node of an instance, as seen from node i.
func (net *network) home(i, processor, instance int) int {
	at := net.place(processor, instance)
	if at == Everywhere {
		return i
	}
	return at % len(net.nodes)
}

// Begin implements piper.Nodes.
func (n *node) Begin(ctx context.Context, p *piper.Pool) error {
	n.pool = p
	if err := n.net.begun.wait(ctx); err != nil {
		return err
	}
	if err := p.Place(func(processor, instance int) bool { return n.net.home(n.index, processor, instance) == n.index }); err != nil {
		return err
	}
	return n.net.placed.wait(ctx)
}

// Forward implements piper.Nodes.
func (n *node) Forward(o *piper.Outlet, c piper.Chunk) {
	s, ok := o.State.(*stream)
	if !ok {
		s = &stream{outlet: o}
		o.State = s
		for i, to := range n.net.nodes {
			if o.ToInstance == piper.OnAllOthers && i == n.index || o.ToInstance >= 0 && i != n.net.home(n.index, o.To, o.ToInstance) {
				continue
			}
			key := piper.GuestKey{Node: string(rune('1' + n.index)), Processor: o.From, Instance: o.FromInstance}
			a, err := to.pool.Arrivals(key, o.To, o.ToInstance)
			if err != nil {
				n.pool.Fail(err)
				return
			}
			e := &end{stream: s, arrivals: a}
			a.State = e
			s.ends = append(s.ends, e)
		}
	}
	for _, e := range s.ends {
		e.arrivals.Put(slices.Clone(c.Data[piper.ChunkRoom:]), 0)
	}
	if len(s.ends) == 0 { // there are no other nodes
		o.Settle(c.Messages, nil)
	}
}

// Handled implements piper.Nodes.
func (n *node) Handled(a *piper.Arrivals, count uint64) {
	e := a.State.(*end)
	e.stream.settle(func() { e.handled = max(e.handled, count) })
}

// Lost implements piper.Nodes.
func (n *node) Lost(a *piper.Arrivals, count uint64) {
	e := a.State.(*end)
	e.stream.settle(func() { e.lost = max(e.lost, count) })
}

type lostError struct{}

func (lostError) Error() string { return "the other node could not decode the message" }

var errLost lostError

// Reply implements piper.Nodes.
func (n *node) Reply(a *piper.Arrivals, call uint64, reply []byte, err error) {
	a.State.(*end).stream.outlet.Reply(call, reply, err)
}

// Quiet implements piper.Nodes.
func (n *node) Quiet(int) {
	select {
	case n.net.quiet <- struct{}{}:
	default: // agreeUntil will look at all groups
	}
}

// Stopping implements piper.Nodes.
func (n *node) Stopping() {}

// End implements piper.Nodes. A node that fails ends the others.
func (n *node) End(err error) {
	if err == nil {
		return
	}
	for _, other := range n.net.nodes {
		if other != n && other.pool != nil {
			other.pool.Fail(err)
		}
	}
}

// agreeUntil lets groups that are quiet on all nodes go on.
func (net *network) agreeUntil(ctx context.Context) {
	for {
		select {
		case <-net.quiet:
		case <-ctx.Done():
			return
		}
		for g := range net.nodes[0].pool.Groups() {
			net.agree(g)
		}
	}
}

// agree looks at a group twice. If no node had anything to do between the two looks, all of
// them were quiet at the same time. Messages that are on their way keep their sender busy.
func (net *network) agree(group int) {
	first := make([]piper.GroupState, len(net.nodes))
	for i, n := range net.nodes {
		first[i] = n.pool.Group(group)
	}
	for i, n := range net.nodes {
		if s := n.pool.Group(group); s != first[i] || !s.Quiet || s.Phase != first[0].Phase {
			return
		}
	}
	for _, n := range net.nodes {
		n.pool.Agree(group, first[0].Phase)
	}
}
