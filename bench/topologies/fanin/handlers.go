// Package fanin has eight sources that send to one sink.
package fanin

import (
	"context"
	"fmt"

	"github.com/topogen/topogen/runtime/pool"
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

// Sink counts messages.
type Sink struct{ handled int }

//go:noinline
func (s *Sink) ReceiveMessage(*Message) { s.handled++ }

// Run sends n messages, an eighth from each source.
func Run(n int, options ...pool.Option) error {
	topology, err := New(Processors{
		Source: func(in topo.Instance) (*Source, error) { return &Source{left: n / in.Number}, nil },
	}, options...)
	if err != nil {
		return err
	}
	if err := topology.Run(context.Background()); err != nil {
		return err
	}
	if got, want := topology.Sink(0).handled, n/8*8; got != want {
		return fmt.Errorf("fanin: %d of %d messages arrived", got, want)
	}
	return nil
}
