// Package chains has a source that feeds chains by turns, one of which may have
// more to do. All go as fast as the slowest: where its queue is full, the source
// pauses.
package chains

import (
	"github.com/topogen/topogen/bench/work"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Message is what travels.
type Message struct{ To int }

// Source sends so many messages, to one chain after the other.
type Source struct{ left int }

func (s *Source) Ping(out *SourceSender) error {
	if s.left == 0 {
		return topo.Done
	}
	s.left--
	return out.SendMessage(Message{s.left % Chains})
}

// Worker does that many steps of work for each message.
type Worker struct{ steps int }

//go:noinline
func (w *Worker) ReceiveMessage(m *Message, out *WorkerSender) {
	work.Do(w.steps)
	out.SendMessage(*m)
}

// Sink counts.
type Sink struct{ handled int }

//go:noinline
func (s *Sink) ReceiveMessage(*Message) { s.handled++ }
