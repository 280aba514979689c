// Package chains has a source that feeds several chains in turn. The first may have more
// work. All chains are as fast as the slowest, because the source pauses when a queue is
// full.
package chains

import (
	"github.com/topogen/topogen/bench/work"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Message is the message type.
type Message struct{ To int }

// Source sends a number of messages, to one chain after the other.
type Source struct{ left int }

func (s *Source) Ping(out *SourceSender) error {
	if s.left == 0 {
		return topo.Done
	}
	s.left--
	return out.SendMessage(Message{s.left % Chains})
}

// Worker does the given steps of work for each message.
type Worker struct{ steps int }

//go:noinline
func (w *Worker) ReceiveMessage(m *Message, out *WorkerSender) {
	work.Do(w.steps)
	out.SendMessage(*m)
}

// Sink counts messages.
type Sink struct{ handled int }

//go:noinline
func (s *Sink) ReceiveMessage(*Message) { s.handled++ }
