package grpc

import (
	"slices"

	"github.com/topogen/topogen/runtime/transport"
)

// groupQueue is the queue of one group and class for a peer, in the order of sending. A
// message that goes in chunks remains at the front until its last chunk is sent, so
// smaller messages behind it wait. Other queues continue in between.
type groupQueue struct {
	class  transport.Class
	list   []transport.Message
	next   int // the first message that is not sent
	offset int // bytes of this message that were sent, if it goes in chunks
}

func (g *groupQueue) empty() bool                { return g.next == len(g.list) }
func (g *groupQueue) front() transport.Message   { return g.list[g.next] }
func (g *groupQueue) large() bool                { return len(g.list[g.next].Payload) > wholeBytesMax }
func (g *groupQueue) rest() []transport.Message  { return g.list[g.next:] }
func (g *groupQueue) put(m ...transport.Message) { g.list = append(g.list, m...) }

// take removes n messages. They remain valid until sent is called.
func (g *groupQueue) take(n int) []transport.Message {
	taken := g.list[g.next : g.next+n]
	g.next += n
	return taken
}

// sent releases messages that were taken.
func (g *groupQueue) sent(taken []transport.Message) {
	clear(taken)
	if g.empty() {
		g.list, g.next = g.list[:0], 0
	} else if g.next > len(g.list)/2 && len(g.list) == cap(g.list) {
		n := copy(g.list, g.list[g.next:]) // reuse the room in front instead of growing
		clear(g.list[n:])
		g.list, g.next = g.list[:n], 0
	}
}

// classQueues holds the queues of one class, sorted by the kind of their next message.
// Queues take turns.
type classQueues struct {
	queues  map[uint64]*groupQueue // by group, including empty ones
	small   []*groupQueue          // next: a message in one frame
	waiting []*groupQueue          // next: a message in chunks, not started
	active  []*groupQueue          // next: a chunk
	chunked bool                   // the previous frame was a chunk
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

// sweep forgets the empty queues.
func (c *classQueues) sweep() {
	for group, g := range c.queues {
		if g.empty() {
			delete(c.queues, group)
		}
	}
}

// place puts a queue at the end of its list.
func (c *classQueues) place(g *groupQueue) {
	switch {
	case g.empty():
	case g.large():
		c.waiting = append(c.waiting, g)
	default:
		c.small = append(c.small, g)
	}
}

// pop removes and returns the first queue.
func pop(list *[]*groupQueue) *groupQueue {
	first := (*list)[0]
	*list = slices.Delete(*list, 0, 1)
	return first
}
