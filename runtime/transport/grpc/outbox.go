package grpc

import (
	"slices"

	"google.golang.org/grpc/mem"

	"github.com/topogen/topogen/runtime/transport"
)

// outbox makes frames of what waits for a peer. It is used by one goroutine. A
// frame of small messages and a chunk take turns, so that neither waits for more
// than one of the other; chunks go round the groups.
type outbox struct {
	queue *queue
	count *transport.Counters

	small []transport.Message // taken out of the queue
	next  int                 // the first of them that has not been sent

	waiting []transport.Message // large ones that are not active yet
	active  []*largeMessage     // at most one for each group, and together not larger than most
	bytes   int                 // of active
	most    int
	turn    int  // whose chunk is next
	chunked bool // the frame before this was a chunk
}

// largeMessage is one that goes in chunks, sent up to offset.
type largeMessage struct {
	transport.Message
	offset int
}

// outgoing is a frame.
type outgoing struct {
	buffers  mem.BufferSlice
	messages []transport.Message // that it ends; valid until the next frame
	large    *largeMessage       // whose chunk it is
	sent     int                 // of it, with this frame
}

// begin prepares for a new stream, to a peer that takes messages up to that size.
// Large ones that were cut off begin again: of what had arrived nothing is left.
func (o *outbox) begin(most uint64) {
	o.most = int(min(uint64(o.queue.limits.largeBytes), max(most, chunkBytes)))
	for _, l := range o.active {
		l.offset = 0
	}
}

// load looks whether there is something to send.
func (o *outbox) load() bool {
	if o.next == len(o.small) {
		clear(o.small)
		o.small, o.next = o.queue.takeSmall(o.small), 0
	}
	o.waiting = o.queue.takeLarge(o.waiting)
	o.activate()
	return o.next < len(o.small) || len(o.active) > 0
}

// activate begins with those large messages whose turn it is.
func (o *outbox) activate() {
	for i := 0; i < len(o.waiting); {
		m := o.waiting[i]
		busy := slices.ContainsFunc(o.active, func(l *largeMessage) bool { return l.Group == m.Group })
		tooLarge := len(m.Payload) > o.most // for this peer, whose limit is lower
		switch {
		case tooLarge:
			o.count.Dropped.Add(1)
			o.queue.done(m)
		case busy:
			i++
			continue
		case o.bytes+len(m.Payload) > o.most:
			return // those behind it do not overtake it for ever
		default:
			o.active = append(o.active, &largeMessage{Message: m})
			o.bytes += len(m.Payload)
		}
		o.waiting = slices.Delete(o.waiting, i, i+1)
	}
}

// frame makes the next frame; load has said that there is one.
func (o *outbox) frame() outgoing {
	o.chunked = len(o.active) > 0 && (!o.chunked || o.next == len(o.small))
	if o.chunked {
		return o.chunkFrame()
	}
	n, size := frameOf(o.small[o.next:])
	messages := o.small[o.next : o.next+n]
	b := frames.Get(size)
	*b = appendMessages((*b)[:0], messages)
	return outgoing{buffers: mem.BufferSlice{mem.NewBuffer(b, frames)}, messages: messages}
}

func (o *outbox) chunkFrame() outgoing {
	o.turn %= len(o.active)
	l := o.active[o.turn]
	end := min(l.offset+chunkBytes, len(l.Payload))
	c := chunk{group: l.Group, size: uint64(len(l.Payload)), offset: uint64(l.offset), data: l.Payload[l.offset:end]}
	f := outgoing{
		buffers: mem.BufferSlice{mem.SliceBuffer(appendChunkHead(nil, &c)), mem.SliceBuffer(c.data)},
		large:   l, sent: end,
	}
	if end == len(l.Payload) {
		f.messages = []transport.Message{l.Message}
	}
	return f
}

// done takes note of what has become of a frame. A message is not sent again if
// its last part may have arrived.
func (o *outbox) done(f outgoing, sent bool) {
	switch {
	case f.large == nil:
		o.next += len(f.messages)
	case f.messages != nil:
		o.active = slices.Delete(o.active, o.turn, o.turn+1)
		o.bytes -= len(f.large.Payload)
	case sent:
		f.large.offset = f.sent
		o.turn++
	}
	if sent {
		size := 0
		for i := range f.messages {
			size += len(f.messages[i].Payload)
		}
		o.count.Sent.Add(uint64(len(f.messages)))
		o.count.SentBytes.Add(uint64(size))
	} else {
		o.count.Dropped.Add(uint64(len(f.messages)))
	}
	o.queue.done(f.messages...)
}

// drop lets fall what was taken out of the queue.
func (o *outbox) drop() {
	left := o.small[o.next:]
	o.count.Dropped.Add(uint64(len(left) + len(o.waiting) + len(o.active)))
	o.queue.done(left...)
	o.queue.done(o.waiting...)
	for _, l := range o.active {
		o.queue.done(l.Message)
	}
	o.small, o.next, o.waiting, o.active, o.bytes = nil, 0, nil, nil, 0
}
