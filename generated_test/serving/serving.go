// Package serving has sources with Serve and Ping, and a blocking processor.
package serving

import (
	"context"

	"github.com/topogen/topogen/runtime/topo"
)

const Items = 50

type Item struct{ N int }

type Note struct{}

// Server sends from Serve, which waits while a queue is full.
type Server struct{}

func (*Server) Serve(ctx context.Context, out *ServerSender) error {
	for i := range Items {
		if err := out.SendItem(Item{i}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Pinger is idle now and then.
type Pinger struct{ n int }

func (p *Pinger) Ping(ctx context.Context, out *PingerSender) error {
	switch {
	case p.n == Items:
		return topo.Done
	case p.n%10 == 9:
		p.n++
		if err := out.SendItem(Item{p.n}); err != nil {
			return err
		}
		return topo.Idle
	}
	p.n++
	return out.SendItem(Item{p.n})
}

// Quiet sends nothing and receives nothing.
type Quiet struct{ Pings int }

func (q *Quiet) Ping() error {
	q.Pings++
	return topo.Done
}

// Adapted takes interfaces whose methods return no errors.
type Adapted struct{ n int }

type itemSender interface{ SendItem(Item) }

func (a *Adapted) Ping(out itemSender) error {
	if a.n == Items {
		return topo.Done
	}
	a.n++
	out.SendItem(Item{a.n})
	return nil
}

func (a *Adapted) Finish(out interface {
	SendItemToSink(Item) error
	SendNote(Note)
}) error {
	out.SendNote(Note{})
	return out.SendItemToSink(Item{0})
}

type AdaptedServer struct{}

func (AdaptedServer) Serve(_ context.Context, out itemSender) error {
	for i := range Items {
		out.SendItem(Item{i})
	}
	return nil
}

type Store struct{ Count int }

func (s *Store) ReceiveItem(m *Item, out *StoreSender) error {
	s.Count++
	out.SendItem(*m)
	return nil
}

type Sink struct{ Items, Notes int }

func (s *Sink) ReceiveItem(Item) { s.Items++ }
func (s *Sink) ReceiveNote(Note) { s.Notes++ }
