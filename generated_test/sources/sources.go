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
	begun time.Time
	serve func(ctx context.Context, send func() error, incarnation int) error
	ping  func(ctx context.Context, send func() error, n int) error
	make  func(incarnation int) error
	who   string // the processor that runs; the others end at once

	mu     sync.Mutex
	counts map[string]int
	items  []Item
}

var script *Script

func (s *Script) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
	return s.counts[what]
}

func (s *Script) run(ctx context.Context, who string, send func(Item) error) error {
	if s.who != who {
		<-ctx.Done() // until the topology ends
		return nil
	}
	return s.serve(ctx, func() error { return send(Item{who, time.Since(s.begun)}) }, s.count(who))
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
	return script.run(ctx, "batch", out.SendItem)
}

func (Limited) Serve(ctx context.Context, out *LimitedSender) error {
	return script.run(ctx, "limited", out.SendItem)
}

func (Server) Serve(ctx context.Context, out *ServerSender) error {
	if script.who != "server" {
		return nil
	}
	return script.run(ctx, "server", out.SendItem)
}

func (Pinger) Ping(ctx context.Context, out *PingerSender) error {
	if script.who != "pinger" {
		return topo.Done
	}
	return script.ping(ctx, func() error { return out.SendItem(Item{"pinger", time.Since(script.begun)}) }, script.count("pinger"))
}

// NewSlow takes the time in the script.
func NewSlow() (*Slow, error) {
	n := script.count("new")
	if script.make == nil {
		return &Slow{}, nil
	}
	return &Slow{}, script.make(n)
}

func (Slow) Serve(ctx context.Context, out *SlowSender) error {
	return script.run(ctx, "slow", out.SendItem)
}

func (Sink) ReceiveItem(m Item) {
	script.mu.Lock()
	defer script.mu.Unlock()
	script.items = append(script.items, m)
}
