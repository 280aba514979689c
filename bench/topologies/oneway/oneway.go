// Package oneway is a topology on two nodes for benchmarks.
package oneway

import (
	"sync/atomic"

	"github.com/topogen/topogen/runtime/topo"
)

// Message has 64 bytes when it is encoded.
type Message struct {
	ID   uint64
	Text string
}

// Question and Answer are a call.
type Question struct{ N uint64 }

// Answer answers a Question.
type Answer struct{ N uint64 }

// Messages is how many messages the source sends.
var Messages int

// Received counts the messages of the sink.
var Received atomic.Uint64

const text = "0123456789012345678901234567890123456789012345678901234"

// Source sends.
type Source struct{ n int }

// NewSource makes a source.
func NewSource() *Source { return new(Source) }

// Ping sends a message.
func (s *Source) Ping(out *SourceSender) error {
	if s.n == Messages {
		return topo.Done
	}
	s.n++
	out.SendMessage(Message{ID: 1 << 42, Text: text})
	return nil
}

// Sink counts.
type Sink struct{ n uint64 }

// NewSink makes a sink.
func NewSink() *Sink { return new(Sink) }

// ReceiveMessage counts a message.
func (s *Sink) ReceiveMessage(m *Message) {
	s.n += uint64(len(m.Text)) / 55
	Received.Store(s.n)
}

// ReceiveQuestion answers.
func (s *Sink) ReceiveQuestion(m Question) Answer { return Answer{m.N + 1} }
