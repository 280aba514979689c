// Package alone is a topology for benchmarks.
package alone

import "github.com/topogen/topogen/runtime/topo"

// Message has 64 bytes.
type Message struct{ Words [8]uint64 }

// Messages is how many messages the source sends. Began and Ended are closed when the sink
// gets the first and the last one.
var (
	Messages     int
	Began, Ended chan struct{}
)

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
	out.SendMessage(Message{})
	return nil
}

// Sink counts.
type Sink struct{ n int }

// NewSink makes a sink.
func NewSink() *Sink { return new(Sink) }

// ReceiveMessage counts a message.
func (s *Sink) ReceiveMessage(*Message) {
	if s.n++; s.n == 1 {
		close(Began)
	}
	if s.n == Messages {
		close(Ended)
	}
}
