package grpc

import (
	"google.golang.org/grpc/mem"

	"github.com/topogen/topogen/runtime/transport"
)

// outbox makes frames of the messages that wait for a peer. It is used by one goroutine.
// Classes take turns as transport.Turns says. Within a class a frame of small
// messages and a chunk take turns, so that neither waits for more than one of the
// other, and so do the groups.
type outbox struct {
	queue    *queue
	count    *transport.Counters
	tooLarge func(most int)      // a message is dropped, since the peer takes no more than that
	used     []transport.Message // for the queue

	turns transport.Turns
	lines [transport.Classes]line
	open  map[uint64]*lane // by group, those of active lines: a peer takes one such message of a group at a time
	bytes int              // of these messages
	most  int              // what bytes may be
	runs  []run            // of the last frame
}

// run is messages of one lane that were taken out.
type run struct {
	lane     *lane
	messages []transport.Message
}

// outgoing is a frame.
type outgoing struct {
	buffers mem.BufferSlice
	runs    []run // of the messages that it ends; valid until the next frame
	chunked *lane // whose chunk it is
	sent    int   // of its first message, with this frame
}

// begin prepares for a new stream, to a peer that takes messages up to that size.
// Large ones that were cut off begin again: of what had arrived nothing is left.
func (o *outbox) begin(most uint64) {
	o.most = int(min(uint64(o.queue.largest), max(most, wholeBytesMax)))
	for _, l := range o.open {
		l.offset = 0
	}
}

// load looks whether there is something to send.
func (o *outbox) load() bool {
	o.used = o.queue.take(o.used)
	for rest := o.used; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Group == rest[0].Group && rest[n].Class == rest[0].Class {
			n++
		}
		o.lines[rest[0].Class].put(rest[0].Class, rest[:n])
		rest = rest[n:]
	}
	clear(o.used)
	for class := range o.lines {
		o.activate(&o.lines[class])
	}
	for class := range o.lines {
		if o.lines[class].ready() {
			return true
		}
	}
	return false
}

// activate begins with the large messages of a line whose turn it is.
func (o *outbox) activate(l *line) {
	for i := 0; i < len(l.waiting); {
		one := l.waiting[i]
		m := one.front()
		other := o.open[m.Group]
		size := len(m.Payload)
		switch {
		case size > o.most: // for this peer, whose limit is lower
			o.remove(l, i)
			o.end(run{one, one.take(1)}, false)
			o.tooLarge(o.most)
			l.place(one)
		case other != nil:
			if one.class != transport.Bulk {
				o.promote()
			}
			i++
		case o.bytes+size > o.most:
			if one.class != transport.Bulk {
				o.promote()
			}
			return // those behind it do not overtake it for ever
		default:
			o.remove(l, i)
			if o.open == nil {
				o.open = make(map[uint64]*lane)
			}
			o.open[m.Group] = one
			o.bytes += size
			l.active = append(l.active, one)
		}
	}
}

func (o *outbox) remove(l *line, i int) { l.waiting = append(l.waiting[:i], l.waiting[i+1:]...) }

// promote has the bulk messages that have begun go on as ordered ones: one of
// these waits for them.
func (o *outbox) promote() {
	bulk := &o.lines[transport.Bulk]
	ordered := &o.lines[transport.Ordered]
	ordered.active = append(ordered.active, bulk.active...)
	clear(bulk.active)
	bulk.active = bulk.active[:0]
}

// frame makes the next frame, after load has returned true.
func (o *outbox) frame() outgoing {
	class := o.turns.Next(o.lines[transport.Urgent].ready(), o.lines[transport.Ordered].ready(), o.lines[transport.Bulk].ready())
	l := &o.lines[class]
	l.chunked = len(l.active) > 0 && (!l.chunked || len(l.small) == 0)
	if l.chunked {
		return o.chunkFrame(pop(&l.active))
	}
	return o.smallFrame(l)
}

// smallFrame fills a frame with small messages. A message of aloneBytes goes alone,
// and is not copied.
func (o *outbox) smallFrame(l *line) outgoing {
	o.runs = o.runs[:0]
	left := room{messages: frameMessagesMax, bytes: frameBytes}
	size := 0
	for len(l.small) > 0 {
		one := l.small[0]
		n, inner := left.take(one.rest())
		if n == 0 {
			break
		}
		size += messagesSize(inner)
		o.runs = append(o.runs, run{one, one.take(n)})
		pop(&l.small)
		l.place(one)
	}
	f := outgoing{runs: o.runs}
	if first := o.runs[0].messages; len(first[0].Payload) >= aloneBytes {
		head := appendMessagesHead(nil, first[0])
		f.buffers = mem.BufferSlice{mem.SliceBuffer(head), mem.SliceBuffer(first[0].Payload)}
		return f
	}
	b := frames.Get(size)
	*b = (*b)[:0]
	for _, r := range o.runs {
		*b = appendMessages(*b, r.messages)
	}
	f.buffers = mem.BufferSlice{mem.NewBuffer(b, frames)}
	return f
}

func (o *outbox) chunkFrame(one *lane) outgoing {
	m := one.front()
	end := min(one.offset+chunkBytes, len(m.Payload))
	c := chunk{group: m.Group, size: uint64(len(m.Payload)), offset: uint64(one.offset), data: m.Payload[one.offset:end]}
	return outgoing{
		buffers: mem.BufferSlice{mem.SliceBuffer(appendChunkHead(nil, &c)), mem.SliceBuffer(c.data)},
		chunked: one, sent: end,
	}
}

// done ends a frame, which was sent or not. A message is not sent again if
// its last part may have arrived.
func (o *outbox) done(f outgoing, sent bool) {
	if one := f.chunked; one != nil {
		m := one.front()
		home := &o.lines[one.class]
		if f.sent < len(m.Payload) {
			one.offset = f.sent
			home.active = append(home.active, one)
			return
		}
		one.offset = 0
		delete(o.open, m.Group)
		o.bytes -= len(m.Payload)
		o.end(run{one, one.take(1)}, sent)
		home.place(one)
		return
	}
	for _, r := range f.runs {
		o.end(r, sent)
	}
}

// end counts messages that were taken out, and lets go of them.
func (o *outbox) end(r run, sent bool) {
	if sent {
		size := 0
		for i := range r.messages {
			size += len(r.messages[i].Payload)
		}
		o.count.Sent.Add(uint64(len(r.messages)))
		o.count.SentBytes.Add(uint64(size))
	} else {
		o.count.Dropped.Add(uint64(len(r.messages)))
	}
	o.queue.done(r.messages...)
	r.lane.sent(r.messages)
}

// drop drops what was taken out of the queue.
func (o *outbox) drop() {
	for class := range o.lines {
		for _, one := range o.lines[class].lanes {
			o.count.Dropped.Add(uint64(len(one.rest())))
			o.queue.done(one.rest()...)
		}
		o.lines[class] = line{}
	}
	clear(o.open)
	o.bytes = 0
}
