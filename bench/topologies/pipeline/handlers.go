// Package pipeline sends messages through three handlers.
package pipeline

import (
	"github.com/topogen/topogen/bench/work"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Message is the message type.
type Message struct{ N uint64 }

// Source sends a number of messages.
type Source struct{ left int }

func (s *Source) Ping(out *SourceSender) error {
	if s.left == 0 {
		return topo.Done
	}
	s.left--
	return out.SendMessage(Message{uint64(s.left)})
}

// The handlers are not inlined, so that they cost as much as larger ones.

// First, Second and Third are the stages. Each does the given steps of work per message.
type (
	First  struct{ steps int }
	Second struct{ steps int }
	Third  struct {
		steps   int
		handled int
	}
)

//go:noinline
func (f *First) ReceiveMessage(m *Message, out *FirstSender) {
	if f.steps > 0 {
		work.Do(f.steps)
	}
	out.SendMessage(Message{m.N + 1})
}

//go:noinline
func (s *Second) ReceiveMessage(m *Message, out *SecondSender) {
	if s.steps > 0 {
		work.Do(s.steps)
	}
	out.SendMessage(Message{m.N + 1})
}

//go:noinline
func (t *Third) ReceiveMessage(m *Message) {
	if t.steps > 0 {
		work.Do(t.steps)
	}
	t.handled++
}
