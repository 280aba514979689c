package clustertest

import (
	"context"
	"slices"
	"sync"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
)

// network connects the nodes.
type network struct {
	place  Place
	nodes  []*node
	begun  barrier // all pools are known
	placed barrier // all nodes have their instances
	quiet  chan struct{}
}

// node is one node. It implements border.Nodes.
type node struct {
	net   *network
	index int
	pool  *border.Border
}

// stream is a link from one node to another one, or to all others.
type stream struct {
	mu   sync.Mutex
	ends []*end   // by node; nil for a node that gets no messages
	kept []*chunk // to all ends, oldest first
}

// chunk are messages that were passed on together.
type chunk struct {
	outlet   *border.Outlet
	messages int
	waiting  int // ends that have not handled all of them
}

// end is the end of a stream on one node.
type end struct {
	stream   *stream
	outlet   *border.Outlet // gets the replies
	arrivals *border.Arrivals
	settled  uint64
	parts    []part // that are not settled, oldest first
}

// alone reports whether one node alone gets the messages.
func (c *chunk) alone() bool { return c.outlet.ToInstance != border.OnAllOthers || c.outlet.Node != "" }

// part is the part of a chunk for one end.
type part struct {
	chunk *chunk
	left  int
}

// settle settles the first count messages.
func (e *end) settle(count uint64) {
	s := e.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int(max(count, e.settled) - e.settled) // several instances may report at the same time
	e.settled += uint64(n)
	for n > 0 {
		p := &e.parts[0]
		k := min(n, p.left)
		n -= k
		if p.chunk.alone() {
			p.chunk.outlet.Settle(k, nil)
		}
		if p.left -= k; p.left == 0 {
			p.chunk.waiting--
			e.parts = e.parts[1:]
		}
	}
	s.settleAll()
}

// settleAll settles the oldest chunks to all ends that no end has to handle.
func (s *stream) settleAll() {
	for len(s.kept) > 0 && s.kept[0].waiting == 0 {
		s.kept[0].outlet.Settle(s.kept[0].messages, nil)
		s.kept = s.kept[1:]
	}
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

// Begin implements border.Nodes.
func (n *node) Begin(ctx context.Context, p *border.Border) error {
	n.pool = p
	if err := n.net.begun.wait(ctx); err != nil {
		return err
	}
	if err := p.Place(func(processor, instance int) bool { return n.net.home(n.index, processor, instance) == n.index }); err != nil {
		return err
	}
	return n.net.placed.wait(ctx)
}

// Find implements border.Nodes.
func (n *node) Find(name string) (here, known bool) {
	for i := range n.net.nodes {
		known = known || name == nodeName(i)
	}
	return name == nodeName(n.index), known
}

// Others implements border.Nodes.
func (n *node) Others() int { return len(n.net.nodes) - 1 }

// FencingToken implements border.Nodes. Each instance has another token.
func (n *node) FencingToken(processor, instance int) uint64 {
	return uint64(1_000_000*(n.index+1) + 1000*processor + instance)
}

// Forward implements border.Nodes.
func (n *node) Forward(o *border.Outlet, c border.Chunk) {
	trunk := o.Trunk()
	s, ok := trunk.State.(*stream)
	if !ok {
		s = &stream{ends: make([]*end, len(n.net.nodes))}
		trunk.State = s
		if err := n.connect(s, trunk); err != nil {
			n.pool.Fail(err)
			return
		}
	}
	s.mu.Lock()
	k := &chunk{outlet: o, messages: c.Messages}
	var to []*end
	for i, e := range s.ends {
		if e != nil && (o.Node == "" || o.Node == nodeName(i)) {
			to = append(to, e)
			e.parts = append(e.parts, part{k, c.Messages})
		}
	}
	if k.waiting = len(to); !k.alone() {
		o.Reaches(c.Messages, len(to))
		s.kept = append(s.kept, k)
		s.settleAll() // there may be no other nodes
	}
	s.mu.Unlock()
	for _, e := range to {
		e.arrivals.Put(slices.Clone(c.Data), 0, 0)
	}
}

// connect makes the ends of a stream.
func (n *node) connect(s *stream, o *border.Outlet) error {
	for i, to := range n.net.nodes {
		if o.ToInstance == border.OnAllOthers && i == n.index || o.ToInstance >= 0 && i != n.net.home(n.index, o.To, o.ToInstance) {
			continue
		}
		key := border.GuestKey{Node: nodeName(n.index), Processor: o.From, Instance: o.FromInstance}
		a, err := to.pool.Arrivals(key, o.To, o.ToInstance)
		if err != nil {
			return err
		}
		s.ends[i] = &end{stream: s, outlet: o, arrivals: a}
		a.State = s.ends[i]
	}
	return nil
}

// Handled implements border.Nodes.
func (n *node) Handled(a *border.Arrivals, count uint64) {
	a.State.(*end).settle(count)
}

// Reply implements border.Nodes.
func (n *node) Reply(a *border.Arrivals, call border.Call, reply []byte, err error) {
	e := a.State.(*end)
	e.outlet.Reply(nodeName(n.index), call.Number, reply, err)
}

// Quiet implements border.Nodes.
func (n *node) Quiet(int) {
	select {
	case n.net.quiet <- struct{}{}:
	default: // agreeUntil will look at all groups
	}
}

// Full implements border.Nodes.
func (n *node) Full(int) {}

// Stopping implements border.Nodes.
func (n *node) Stopping() {}

// End implements border.Nodes. A node that fails ends the others.
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
