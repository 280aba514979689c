package cluster

import (
	"errors"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
	"github.com/topogen/topogen/runtime/queue"
)

// ledger counts what the instances of a simulation send and receive, outside of the code
// under test.
type ledger struct {
	edges   [][]edgeLedger // by sending node and edge
	streams map[streamKey]uint64
	seen    map[seenKey]uint64
	finish  []int // by processor: number of instances on which Finish was called
	asks    []*simAsk
	made    map[[2]int]int // by processor and instance: how often it was made

	// restarted says that the test has restarted a node. The ledger counts what both
	// processes have done together, so the test checks the figures by itself.
	restarted bool
}

type edgeLedger struct {
	sent, handled         int
	castSent, castHandled int // of messages to all instances on the other nodes
}

// streamKey names messages that must be handled in order: from an instance to an
// instance, or to all instances of a processor.
type streamKey struct{ node, from, fromInstance, to, toInstance int }

type seenKey struct {
	streamKey
	atNode, atInstance int
}

// simAsk is a call of an external sender.
type simAsk struct {
	node    *simNode
	edge    int
	replies int
	err     error
	at      time.Duration
	done    time.Duration
	to      string // the node that gets it
}

func newLedger(d *design) ledger {
	l := ledger{streams: map[streamKey]uint64{}, seen: map[seenKey]uint64{}, finish: make([]int, len(d.parts)), made: map[[2]int]int{}}
	for range d.nodes {
		l.edges = append(l.edges, make([]edgeLedger, len(d.edges)))
	}
	return l
}

// loads are the contents of messages.
var loads = makeLoads(designLoadMax + 256)

func makeLoads(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// load draws the content of a message of a processor, or of a reply to it.
func (s *simulation) load(from int) []byte {
	n := s.design.load
	if p := &s.design.parts[from]; p.load > 0 {
		return loads[:p.load]
	}
	switch {
	case n == 0:
		return nil
	case s.random.IntN(4) > 0:
		n = min(n, 64)
	}
	return loads[:s.random.IntN(n+1)]
}

// newParcel makes the next message of a stream.
func (s *simulation) newParcel(n *simNode, edge, fromInstance, to, hops int) parcel {
	e := &s.design.edges[edge]
	key := streamKey{n.index, e.from, fromInstance, e.to, to}
	s.ledger.streams[key]++
	return parcel{node: n.index, from: e.from, fromInstance: fromInstance, to: to, seq: s.ledger.streams[key], hops: hops, load: s.load(e.from)}
}

// sent counts a message that is put into the queue to instance i.
func (s *simulation) sent(n *simNode, edge, i int, m *parcel) {
	l := &s.ledger.edges[n.index][edge]
	if to := &s.design.parts[s.design.edges[edge].to]; m.to == allInstances && i == to.instances {
		l.castSent++
		return
	}
	if l.sent++; s.onSent != nil {
		s.onSent(edge, m)
	}
}

// received checks and counts a message.
func (s *simulation) received(n *simNode, x *place, edge int, m *parcel) {
	d := s.design
	e := &d.edges[edge]
	at := x.unit.Index()
	l := &s.ledger.edges[m.node][edge]
	if s.counts["messages"]++; s.onReceived != nil {
		s.onReceived(edge, m)
	}
	if m.node != n.index {
		s.countRemote(edge, m)
	}
	if m.to == allInstances && m.node != n.index {
		l.castHandled++
		s.counts["messages to all nodes"]++
	} else {
		l.handled++
	}
	if e.from != m.from || e.to != x.of || m.to != at && m.to != allInstances {
		s.fault("%s: %s got a message of %s/%d for instance %d", n.name, x.name(), d.parts[m.from].name, m.fromInstance, m.to)
	}
	if x.p.finished && (!d.inCycle(edge) || m.last == 0 && !s.ledger.restarted) {
		s.fault("%s: %s got a message of %s/%d after Finish", n.name, x.name(), d.parts[m.from].name, m.fromInstance)
	}
	key := seenKey{streamKey{m.node, m.from, m.fromInstance, e.to, m.to}, n.index, at}
	want := s.ledger.seen[key] + 1
	if !s.ledger.restarted && m.seq != want && (m.seq < want || !s.mayMiss(e.from, e.to)) {
		s.fault("%s: %s got message %d of %s/%d on %s, want %d", n.name, x.name(), m.seq, d.parts[m.from].name, m.fromInstance, nodeName(m.node), want)
	}
	s.ledger.seen[key] = m.seq
	if k := len(m.load); k > 0 && (k > len(loads) || m.load[k-1] != loads[k-1] || m.load[k/2] != loads[k/2]) {
		s.fault("%s: %s got a damaged message", n.name, x.name())
	}
}

// countRemote counts a message of another node.
func (s *simulation) countRemote(edge int, m *parcel) {
	s.counts["messages of other nodes"]++
	if len(m.load) > session.FrameBytesMax {
		s.counts["large messages"]++
	}
	if s.design.edges[edge].once {
		s.counts["messages sent at most once"]++
	}
}

// mayMiss reports whether messages between two processors may be dropped.
func (s *simulation) mayMiss(from, to int) bool {
	if s.loose() || s.ledger.restarted {
		return true
	}
	for _, i := range s.design.between(from, to) {
		if s.mayDrop(i) {
			return true
		}
	}
	return false
}

// sendsMax is the number of messages that a call sends, and one for Ping after it.
const sendsMax = 3

// checkDepth checks the length of a queue after a message was put.
func (s *simulation) checkDepth(n *simNode, edge int, h *queue.Head) {
	e := &s.design.edges[edge]
	switch depth := int(h.Depth()); {
	case s.loose() || s.ledger.restarted || len(s.faults) > 0:
	case e.full == dropOldest:
		// An edge with capacity 1 holds a message that was passed on, and a newer one.
		if h.Len() > max(e.capacity, 2) {
			s.fault("%s: the queue of e%d holds %d, its capacity is %d", n.name, edge, h.Len(), e.capacity)
		}
	case e.full != block && depth > e.capacity, e.full == block && !s.design.inCycle(edge) && depth > e.capacity+sendsMax:
		s.fault("%s: the queue of e%d holds %d, its capacity is %d", n.name, edge, depth, e.capacity)
	}
}

// finished checks that all processors upstream have finished.
func (s *simulation) finished(n *simNode, of int) {
	d := s.design
	s.ledger.finish[of]++
	for i := range d.edges {
		from := d.edges[i].from
		if d.groups[d.edges[i].to] != d.groups[of] || d.inCycle(i) || d.parts[from].external {
			continue
		}
		if s.ledger.restarted {
			continue
		}
		if got, want := s.ledger.finish[from], d.instances(from); got != want {
			s.fault("%s: %s finishes, and %d of %d instances of %s have finished", n.name, d.parts[of].name, got, want, d.parts[from].name)
		}
	}
}

// instances is the number of instances of a processor on all nodes.
func (d *design) instances(of int) int {
	p := &d.parts[of]
	if p.everyNode() {
		return p.instances * d.nodes
	}
	return p.instances
}

// ask makes a request whose reply is awaited.
func (s *simulation) ask(t *simTop, edge int, m parcel) request {
	a := &simAsk{node: t.node, edge: edge, at: s.now}
	a.to, _ = t.node.where.Node(s.design.edges[edge].to, m.to)
	s.ledger.asks = append(s.ledger.asks, a)
	number := len(s.ledger.asks)
	m.call = number
	var u *piper.Unit
	for i := range s.design.parts {
		if !s.design.parts[i].external {
			u = &t.place(i, 0).unit
			break
		}
	}
	return border.RemoteRequest(u, m, encodeParcel, func(b []byte, err error) {
		if a.replies++; a.replies > 1 {
			s.fault("%s: call %d is completed twice", t.node.name, number)
		}
		a.err, a.done = err, s.now
		var got parcel
		switch {
		case s.ledger.restarted:
		case err != nil && !errors.Is(err, errFull) && (!s.mayDrop(edge) || !errors.Is(err, ErrUnreachable)):
			s.fault("%s: call %d: %v", t.node.name, number, err)
		case err != nil:
		case decodeParcel(b, &got) != nil || got.call != number:
			s.fault("%s: call %d got the reply to call %d", t.node.name, number, got.call)
		}
	})
}

// checkCounters compares the counters of all nodes with the ledger.
func (s *simulation) checkCounters() {
	for _, n := range s.nodes {
		if n.state != simWaiting && n.top != nil {
			s.checkNode(n)
		}
	}
}

func (s *simulation) checkNode(n *simNode) {
	for p := range n.core.nodes() {
		pending := 0
		for _, pair := range p.out {
			for i := range pair.kept {
				if k := &pair.kept[i]; !k.dropped {
					pending += k.left()
				}
			}
		}
		if p.kept != uint64(pending) {
			s.fault("%s: %d messages for %s count as kept, and %d are", n.name, p.kept, p.name, pending)
		}
	}
	for i, f := range n.top.pool.Snapshot().Edges[:len(s.design.edges)] {
		l := &s.ledger.edges[n.index][i]
		sent := uint64(l.sent + l.castSent)
		switch {
		case s.ledger.restarted:
		case f.Sent != f.Received+f.Dropped+uint64(f.Len):
			s.fault("%s: e%d: %d sent are not %d received, %d dropped and %d queued", n.name, i, f.Sent, f.Received, f.Dropped, f.Len)
		case f.Sent > sent:
			s.fault("%s: e%d: %d messages count as sent, and %d were sent", n.name, i, f.Sent, sent)
		case f.Received > uint64(l.handled+l.castSent):
			s.fault("%s: e%d: %d messages count as handled, and %d were handled", n.name, i, f.Received, l.handled)
		case f.Dropped > 0 && !s.mayDrop(i):
			s.fault("%s: e%d: %d messages were dropped", n.name, i, f.Dropped)
		}
	}
}

// mayDrop reports whether messages of an edge may be dropped.
func (s *simulation) mayDrop(edge int) bool {
	e := &s.design.edges[edge]
	return s.loose() || e.full == dropOldest || e.full == dropNewest || e.once && s.misplaced > 0
}

// checkEnd checks what holds when all nodes have ended.
func (s *simulation) checkEnd() {
	s.checkCounters()
	d := s.design
	for _, n := range s.nodes {
		if n.frozen {
			continue
		}
		if n.result != nil {
			s.fault("%s: %v", n.name, n.result)
		}
		if n.left {
			s.counts["nodes left"]++
		}
		for p := range n.core.nodes() {
			if s.counts["dropped"] += int(p.dropped); p.kept > 0 {
				s.fault("%s: %d messages for %s are kept at the end", n.name, p.kept, p.name)
			}
			for _, pair := range p.out {
				if len(pair.homes) > 0 {
					s.counts["pairs that moved"]++
				}
			}
		}
		for i, f := range n.top.pool.Snapshot().Edges[:len(s.design.edges)] {
			if !s.ledger.restarted {
				s.checkEdge(n, i, f)
			}
		}
	}
	if s.ledger.restarted {
		return
	}
	for of := range d.parts {
		p := &d.parts[of]
		for i := range p.instances {
			want := 1
			if p.everyNode() {
				want = d.nodes
			}
			if got := s.ledger.made[[2]int{of, i}]; got != want {
				s.fault("%s/%d was made %d times, want %d", p.name, i, got, want)
			}
		}
		if got, want := s.ledger.finish[of], d.instances(of); got != want && !p.external && !s.anyLeft() {
			s.fault("Finish was called on %d instances of %s, want %d", got, p.name, want)
		}
	}
	for i, a := range s.ledger.asks {
		if a.replies != 1 && !a.node.frozen {
			s.fault("%s: call %d has %d replies", a.node.name, i+1, a.replies)
		}
		s.checkTime(i+1, a)
	}
}

// checkTime checks that a call to a node that never returns has not waited much longer
// than retry.timeout: once until the node counts as lost, once for the message, and as long
// as its own node was paused or slow. Calls into a cycle may wait longer, for any node whose
// messages fill the cycle. So may those behind messages of an edge with drop-oldest, which
// are passed on only after others were settled.
func (s *simulation) checkTime(number int, a *simAsk) {
	const slack = 10 * time.Second
	e := &s.design.edges[a.edge]
	if s.design.isCyclic(e.to) || s.design.dropsOldest(e.from, e.to) {
		return
	}
	for _, to := range s.nodes {
		if to.name != a.to || !to.frozen || a.node.frozen {
			continue
		}
		s.counts["calls to nodes that never return"]++
		if limit := max(a.at, to.frozenAt, a.node.delayedUntil) + 2*s.config.Retry.Timeout + slack; a.done > limit {
			s.fault("%s: call %d to %s was made at %v and completed at %v, want %v at most", a.node.name, number, to.name, a.at, a.done, limit)
		}
	}
}

func (s *simulation) checkEdge(n *simNode, edge int, f piper.EdgeFigures) {
	l := &s.ledger.edges[n.index][edge]
	to := &s.design.parts[s.design.edges[edge].to]
	switch sent := uint64(l.sent + l.castSent); {
	case f.Sent != sent || f.Len != 0 || f.Waiting != 0:
		s.fault("%s: e%d: %d were sent, and the counters at the end are %+v", n.name, edge, sent, f)
	case s.loose():
	case f.Received != uint64(l.handled+l.castSent) && l.castSent == 0:
		s.fault("%s: e%d: %d were handled, and the counters at the end are %+v", n.name, edge, l.handled, f)
	case !s.mayDrop(edge) && (l.handled != l.sent || l.castHandled != l.castSent*(s.design.nodes-1)*to.instances):
		s.fault("%s: e%d: %d were sent and %d handled, %d were sent to all nodes and %d handled", n.name, edge, l.sent, l.handled, l.castSent, l.castHandled)
	}
}

// anyLeft reports whether a node has left while others went on, or never returned.
func (s *simulation) anyLeft() bool {
	for _, n := range s.nodes {
		if n.left || n.frozen {
			return true
		}
	}
	return false
}
