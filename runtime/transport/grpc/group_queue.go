package grpc

import (
	"slices"

	"github.com/topogen/topogen/runtime/transport"
)

// lane is what waits for a peer in one class of one group, in the order in which
// it was sent. A message that goes in chunks is at the front until its last one is
// sent, so the small ones behind it wait; other lanes go on in between.
type lane struct {
	class  transport.Class
	list   []transport.Message
	next   int // the first message that has not been sent
	offset int // so much of that message was sent, where it goes in chunks
}

func (l *lane) empty() bool                { return l.next == len(l.list) }
func (l *lane) front() transport.Message   { return l.list[l.next] }
func (l *lane) large() bool                { return len(l.list[l.next].Payload) > wholeBytesMax }
func (l *lane) rest() []transport.Message  { return l.list[l.next:] }
func (l *lane) put(m ...transport.Message) { l.list = append(l.list, m...) }

// take takes out n messages, which stay valid until sent.
func (l *lane) take(n int) []transport.Message {
	taken := l.list[l.next : l.next+n]
	l.next += n
	return taken
}

// sent lets go of messages that were taken out.
func (l *lane) sent(taken []transport.Message) {
	clear(taken)
	if l.empty() {
		l.list, l.next = l.list[:0], 0
	} else if l.next > len(l.list)/2 && len(l.list) == cap(l.list) {
		n := copy(l.list, l.list[l.next:]) // use the room in front before more is taken
		clear(l.list[n:])
		l.list, l.next = l.list[:n], 0
	}
}

// line is the lanes of one class that have something to send, by what they send
// next. Lanes take turns.
type line struct {
	lanes   map[uint64]*lane // by group, also lanes that have nothing to send
	small   []*lane          // next: a message that goes whole
	waiting []*lane          // next: a message in chunks that has not begun
	active  []*lane          // next: a chunk
	chunked bool             // the frame before this was a chunk
}

func (l *line) ready() bool { return len(l.small) > 0 || len(l.active) > 0 }

// put adds messages of one group.
func (l *line) put(class transport.Class, m []transport.Message) {
	one := l.lanes[m[0].Group]
	if one == nil {
		if len(l.lanes) >= lanesMax {
			l.sweep()
		}
		one = &lane{class: class}
		if l.lanes == nil {
			l.lanes = make(map[uint64]*lane)
		}
		l.lanes[m[0].Group] = one
	}
	idle := one.empty()
	one.put(m...)
	if idle {
		l.place(one)
	}
}

// sweep forgets the lanes that have nothing to send.
func (l *line) sweep() {
	for group, one := range l.lanes {
		if one.empty() {
			delete(l.lanes, group)
		}
	}
}

// place gives a lane its turn behind the others.
func (l *line) place(one *lane) {
	switch {
	case one.empty():
	case one.large():
		l.waiting = append(l.waiting, one)
	default:
		l.small = append(l.small, one)
	}
}

// pop takes out the lane whose turn it is.
func pop(list *[]*lane) *lane {
	first := (*list)[0]
	*list = slices.Delete(*list, 0, 1)
	return first
}
