package grpc

import (
	"google.golang.org/grpc/mem"

	"github.com/topogen/topogen/runtime/transport"
)

// scheduler packs the queued messages for a peer into frames. It must be used by one
// goroutine. Classes take turns, see transport.Turns. Within a class, frames of small
// messages and chunks alternate, so that neither waits for more than one of the other.
// The groups take turns, too.
type scheduler struct {
	queue    *queue
	count    *transport.Counters
	tooLarge func(limit int)     // called when a message is dropped because the peer does not accept its size
	spare    []transport.Message // reused by the queue

	turns   transport.Turns
	classes [transport.Classes]classQueues
	open    map[uint64]*groupQueue // active queues, by group: a peer accepts one message in chunks per group at a time
	bytes   int                    // of their messages
	limit   int                    // maximum of bytes
	runs    []run                  // of the last frame
}

// run is a sequence of messages taken from one queue.
type run struct {
	queue    *groupQueue
	messages []transport.Message
}

// outgoing is a frame to send.
type outgoing struct {
	buffers mem.BufferSlice
	runs    []run       // the messages that it completes; valid until the next frame
	chunkOf *groupQueue // the queue of the chunk
	sent    int         // bytes of the queue's first message that are sent, including this frame
}

// begin prepares for a new stream to a peer that accepts messages up to a size.
// Messages in chunks start again, because the peer has dropped their earlier chunks.
func (s *scheduler) begin(limit uint64) {
	s.limit = int(min(uint64(s.queue.largest), max(limit, wholeBytesMax)))
	for _, g := range s.open {
		g.offset = 0
	}
}

// load takes new messages from the queue, and reports whether there is something to
// send.
func (s *scheduler) load() bool {
	s.spare = s.queue.take(s.spare)
	for rest := s.spare; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Group == rest[0].Group && rest[n].Class == rest[0].Class {
			n++
		}
		s.classes[rest[0].Class].put(rest[0].Class, rest[:n])
		rest = rest[n:]
	}
	clear(s.spare)
	for class := range s.classes {
		s.activate(&s.classes[class])
	}
	for class := range s.classes {
		if s.classes[class].ready() {
			return true
		}
	}
	return false
}

// activate starts messages in chunks, as far as the limits allow.
func (s *scheduler) activate(c *classQueues) {
	for i := 0; i < len(c.waiting); {
		g := c.waiting[i]
		m := g.front()
		other := s.open[m.Group]
		size := len(m.Payload)
		switch {
		case size > s.limit: // the limit of this peer is lower
			s.remove(c, i)
			s.end(run{g, g.take(1)}, false)
			s.tooLarge(s.limit)
			c.place(g)
		case other != nil:
			if g.class != transport.Bulk {
				s.promote()
			}
			i++
		case s.bytes+size > s.limit:
			if g.class != transport.Bulk {
				s.promote()
			}
			return // later messages must not overtake it forever
		default:
			s.remove(c, i)
			if s.open == nil {
				s.open = make(map[uint64]*groupQueue)
			}
			s.open[m.Group] = g
			s.bytes += size
			c.active = append(c.active, g)
		}
	}
}

func (s *scheduler) remove(c *classQueues, i int) {
	c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
}

// promote moves the bulk messages that have started to the ordered ones, because an
// ordered message waits for them.
func (s *scheduler) promote() {
	bulk := &s.classes[transport.Bulk]
	ordered := &s.classes[transport.Ordered]
	ordered.active = append(ordered.active, bulk.active...)
	clear(bulk.active)
	bulk.active = bulk.active[:0]
}

// frame returns the next frame. It must be called after load has returned true.
func (s *scheduler) frame() outgoing {
	class := s.turns.Next(s.classes[transport.Urgent].ready(), s.classes[transport.Ordered].ready(), s.classes[transport.Bulk].ready())
	c := &s.classes[class]
	c.chunked = len(c.active) > 0 && (!c.chunked || len(c.small) == 0)
	if c.chunked {
		return s.chunkFrame(pop(&c.active))
	}
	return s.smallFrame(c)
}

// smallFrame fills a frame with small messages. A message of at least aloneBytes goes
// alone and is not copied.
func (s *scheduler) smallFrame(c *classQueues) outgoing {
	s.runs = s.runs[:0]
	left := room{messages: frameMessagesMax, bytes: frameBytes}
	size := 0
	for len(c.small) > 0 {
		g := c.small[0]
		n, inner := left.take(g.rest())
		if n == 0 {
			break
		}
		size += messagesSize(inner)
		s.runs = append(s.runs, run{g, g.take(n)})
		pop(&c.small)
		c.place(g)
	}
	f := outgoing{runs: s.runs}
	if first := s.runs[0].messages; len(first[0].Payload) >= aloneBytes {
		head := appendMessagesHead(nil, first[0])
		f.buffers = mem.BufferSlice{mem.SliceBuffer(head), mem.SliceBuffer(first[0].Payload)}
		return f
	}
	b := frames.Get(size)
	*b = (*b)[:0]
	for _, r := range s.runs {
		*b = appendMessages(*b, r.messages)
	}
	f.buffers = mem.BufferSlice{mem.NewBuffer(b, frames)}
	return f
}

func (s *scheduler) chunkFrame(g *groupQueue) outgoing {
	m := g.front()
	end := min(g.offset+chunkBytes, len(m.Payload))
	part := chunk{group: m.Group, size: uint64(len(m.Payload)), offset: uint64(g.offset), data: m.Payload[g.offset:end]}
	return outgoing{
		buffers: mem.BufferSlice{mem.SliceBuffer(appendChunkHead(nil, &part)), mem.SliceBuffer(part.data)},
		chunkOf: g, sent: end,
	}
}

// done completes a frame, which was sent or not. A message whose last part may have
// arrived is not sent again.
func (s *scheduler) done(f outgoing, sent bool) {
	if g := f.chunkOf; g != nil {
		m := g.front()
		queues := &s.classes[g.class]
		if f.sent < len(m.Payload) {
			g.offset = f.sent
			queues.active = append(queues.active, g)
			return
		}
		g.offset = 0
		delete(s.open, m.Group)
		s.bytes -= len(m.Payload)
		s.end(run{g, g.take(1)}, sent)
		queues.place(g)
		return
	}
	for _, r := range f.runs {
		s.end(r, sent)
	}
}

// end counts messages that were taken, and releases them.
func (s *scheduler) end(r run, sent bool) {
	if sent {
		size := 0
		for i := range r.messages {
			size += len(r.messages[i].Payload)
		}
		s.count.Sent.Add(uint64(len(r.messages)))
		s.count.SentBytes.Add(uint64(size))
	} else {
		s.count.Dropped.Add(uint64(len(r.messages)))
	}
	s.queue.done(r.messages...)
	r.queue.sent(r.messages)
}

// drop drops the messages that were taken from the queue.
func (s *scheduler) drop() {
	for class := range s.classes {
		for _, g := range s.classes[class].queues {
			s.count.Dropped.Add(uint64(len(g.rest())))
			s.queue.done(g.rest()...)
		}
		s.classes[class] = classQueues{}
	}
	clear(s.open)
	s.bytes = 0
}
