package grpc

import (
	"slices"

	"github.com/topogen/topogen/runtime/transport"
)

// lane is what waits for a peer in one class of one group, in the order in which
// it was sent. A message that goes in chunks is at the front until its last one is
// sent, so the small ones behind it wait; other lanes go on in between.
type groupQueue struct {
	class  transport.Class
	list   []transport.Message
	next   int // the first message that has not been sent
	offset int // so much of that message was sent, where it goes in chunks
}

func (g *groupQueue) empty() bool                { return g.next == len(g.list) }
func (g *groupQueue) front() transport.Message   { return g.list[g.next] }
func (g *groupQueue) large() bool                { return len(g.list[g.next].Payload) > wholeBytesMax }
func (g *groupQueue) rest() []transport.Message  { return g.list[g.next:] }
func (g *groupQueue) put(m ...transport.Message) { g.list = append(g.list, m...) }

// take takes out n messages, which stay valid until sent.
func (g *groupQueue) take(n int) []transport.Message {
	taken := g.list[g.next : g.next+n]
	g.next += n
	return taken
}

// sent lets go of messages that were taken out.
func (g *groupQueue) sent(taken []transport.Message) {
	clear(taken)
	if g.empty() {
		g.list, g.next = g.list[:0], 0
	} else if g.next > len(g.list)/2 && len(g.list) == cap(g.list) {
		n := copy(g.list, g.list[g.next:]) // use the room in front before more is taken
		clear(g.list[n:])
		g.list, g.next = g.list[:n], 0
	}
}

// line is the lanes of one class that have something to send, by what they send
// next. Lanes take turns.
type classQueues struct {
	queues  map[uint64]*groupQueue // by group, also lanes that have nothing to send
	small   []*groupQueue          // next: a message that goes whole
	waiting []*groupQueue          // next: a message in chunks that has not begun
	active  []*groupQueue          // next: a chunk
	chunked bool                   // the frame before this was a chunk
}

func (c *classQueues) ready() bool { return len(c.small) > 0 || len(c.active) > 0 }

// put adds messages of one group.
func (c *classQueues) put(class transport.Class, m []transport.Message) {
	g := c.queues[m[0].Group]
	if g == nil {
		if len(c.queues) >= groupQueuesMax {
			c.sweep()
		}
		g = &groupQueue{class: class}
		if c.queues == nil {
			c.queues = make(map[uint64]*groupQueue)
		}
		c.queues[m[0].Group] = g
	}
	idle := g.empty()
	g.put(m...)
	if idle {
		c.place(g)
	}
}

// sweep forgets the lanes that have nothing to send.
func (c *classQueues) sweep() {
	for group, g := range c.queues {
		if g.empty() {
			delete(c.queues, group)
		}
	}
}

// place gives a lane its turn behind the others.
func (c *classQueues) place(g *groupQueue) {
	switch {
	case g.empty():
	case g.large():
		c.waiting = append(c.waiting, g)
	default:
		c.small = append(c.small, g)
	}
}

// pop takes out the lane whose turn it is.
func pop(list *[]*groupQueue) *groupQueue {
	first := (*list)[0]
	*list = slices.Delete(*list, 0, 1)
	return first
}
