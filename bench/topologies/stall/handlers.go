// Package stall has consumers that stop handling what is sent to them, one for
// each policy of a full queue and for each shape that might not notice.
package stall

import (
	"sync/atomic"

	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// BurstSize is how many messages a Burst makes of one.
const BurstSize = 1000

// Message, Question and Answer are of one size.
type (
	Message  struct{ words [8]uint64 }
	Question struct{ words [8]uint64 }
	Answer   struct{ words [8]uint64 }
)

// turns is how often a message still goes round the ring.
func (m *Message) turns() *uint64 { return &m.words[0] }

// Source sends from start to stop, at most as many messages as are left.
type Source struct {
	left        int
	start, stop *atomic.Bool
}

// Ping does not mind a send that fails: it goes on as one that dropped does.
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

// Stall is what makes a consumer stop: after some messages it waits.
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

// Sink only takes.
type Sink struct{ Stall }

func (s *Sink) ReceiveMessage(*Message) { s.handle() }

// Forward passes on, in the ring.
type Forward struct{}

func (*Forward) ReceiveMessage(m *Message, out interface{ SendMessage(Message) }) {
	out.SendMessage(*m)
}

// Turn sends each message round the ring once more.
type Turn struct{ Stall }

func (t *Turn) ReceiveMessage(m *Message, out interface{ SendMessage(Message) }) {
	t.handle()
	if turns := m.turns(); *turns > 0 {
		*turns--
		out.SendMessage(*m)
	}
}

// Asker asks and Replier answers.
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

// Burst makes many messages of one.
type Burst struct{}

func (*Burst) ReceiveMessage(m *Message, out *BurstSender) {
	for range BurstSize {
		out.SendMessage(*m)
	}
}
