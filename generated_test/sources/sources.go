// Package sources has processors without inputs that end, hang and fail.
package sources

import (
	"context"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// Item has its sender and time.
type Item struct {
	From string
	At   time.Duration
}

// Script has the actions of the processors. Processors without an action end at once.
type Script struct {
	Begun time.Time
	Serve func(ctx context.Context, send func() error, incarnation int) error
	Ping  func(ctx context.Context, send func() error, n int) error
	Make  func(incarnation int) error
	Who   string // the processor that runs; the others end at once

	mu     sync.Mutex
	Counts map[string]int
	Items  []Item
}

var Current *Script

func (s *Script) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Counts[what]++
	return s.Counts[what]
}

func (s *Script) run(ctx context.Context, who string, send func(Item) error) error {
	if s.Who != who {
		<-ctx.Done() // until the topology ends
		return nil
	}
	return s.Serve(ctx, func() error { return send(Item{who, time.Since(s.Begun)}) }, s.count(who))
}

type (
	Batch   struct{}
	Limited struct{}
	Server  struct{}
	Pinger  struct{}
	Slow    struct{}
	Sink    struct{}
)

func (Batch) Serve(ctx context.Context, out *BatchSender) error {
	return Current.run(ctx, "batch", out.SendItem)
}

func (Limited) Serve(ctx context.Context, out *LimitedSender) error {
	return Current.run(ctx, "limited", out.SendItem)
}

func (Server) Serve(ctx context.Context, out *ServerSender) error {
	if Current.Who != "server" {
		return nil
	}
	return Current.run(ctx, "server", out.SendItem)
}

func (Pinger) Ping(ctx context.Context, out *PingerSender) error {
	if Current.Who != "pinger" {
		return topo.Done
	}
	return Current.Ping(ctx, func() error { return out.SendItem(Item{"pinger", time.Since(Current.Begun)}) }, Current.count("pinger"))
}

// NewSlow takes the time in the script.
func NewSlow() (*Slow, error) {
	n := Current.count("new")
	if Current.Make == nil {
		return &Slow{}, nil
	}
	return &Slow{}, Current.Make(n)
}

func (Slow) Serve(ctx context.Context, out *SlowSender) error {
	return Current.run(ctx, "slow", out.SendItem)
}

func (Sink) ReceiveItem(m Item) {
	Current.mu.Lock()
	defer Current.mu.Unlock()
	Current.Items = append(Current.Items, m)
}
