// Package stall has consumers that stop handling messages: one for each policy of a full
// queue, and one for each shape in which backpressure is difficult.
package stall

import (
	"sync/atomic"

	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// BurstSize is the number of messages that a Burst sends per message.
const BurstSize = 1000

// Message, Question and Answer have the same size.
type (
	Message  struct{ words [8]uint64 }
	Question struct{ words [8]uint64 }
	Answer   struct{ words [8]uint64 }
)

// turns is the number of times that a message still goes around the ring.
func (m *Message) turns() *uint64 { return &m.words[0] }

// Source sends between start and stop, as long as there are messages left.
type Source struct {
	left        int
	start, stop *atomic.Bool
}

// Ping ignores a send that fails, like a source that drops messages.
func (s *Source) Ping(out interface{ SendMessage(Message) error }) error {
	switch {
	case s.stop.Load():
		return topo.Done
	case s.left == 0 || !s.start.Load():
		return topo.Idle
	}
	s.left--
	m := Message{}
	*m.turns() = 1
	_ = out.SendMessage(m)
	return nil
}

// Stall makes a consumer stop: after a number of messages it waits.
type Stall struct {
	after   int
	release <-chan struct{}
}

func (s *Stall) handle() {
	if s.after > 0 {
		s.after--
		return
	}
	<-s.release
}

// Sink receives messages.
type Sink struct{ Stall }

func (s *Sink) ReceiveMessage(*Message) { s.handle() }

// Forward passes messages on in the ring.
type Forward struct{}

func (*Forward) ReceiveMessage(m *Message, out interface{ SendMessage(Message) }) {
	out.SendMessage(*m)
}

// Turn sends each message around the ring once more.
type Turn struct{ Stall }

func (t *Turn) ReceiveMessage(m *Message, out interface{ SendMessage(Message) }) {
	t.handle()
	if turns := m.turns(); *turns > 0 {
		*turns--
		out.SendMessage(*m)
	}
}

// Asker asks and Replier replies.
type (
	Asker   struct{}
	Replier struct{ Stall }
)

func (*Asker) ReceiveMessage(m *Message, out *AskerSender) { out.SendQuestion(Question(*m)) }

func (*Asker) ReceiveAnswer(*Answer) {}

func (r *Replier) ReceiveQuestion(q *Question) Answer {
	r.handle()
	return Answer(*q)
}

// Burst sends many messages per message.
type Burst struct{}

func (*Burst) ReceiveMessage(m *Message, out *BurstSender) {
	for range BurstSize {
		out.SendMessage(*m)
	}
}
