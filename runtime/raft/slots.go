package raft

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/fsm"
)

// slots limit how many requests run at the same time. They work like a channel with a
// buffer, but cost less while slots are free.
type slots struct {
	max     int64
	taken   atomic.Int64
	waiting atomic.Int64
	freed   chan struct{} // has room for one signal: a waiting goroutine should try again
}

func newSlots(n int) *slots { return &slots{max: int64(n), freed: make(chan struct{}, 1)} }

// tryTake takes a slot if one is free.
func (s *slots) tryTake() bool {
	for {
		n := s.taken.Load()
		if n >= s.max {
			return false
		}
		if s.taken.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// take waits for a slot. Goroutines that already wait go first.
func (s *slots) take(ctx context.Context, n *Node) error {
	if s.waiting.Load() == 0 && s.tryTake() {
		return nil
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	for !s.tryTake() {
		select {
		case <-s.freed:
		case <-n.done:
			return stopped(n.err)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", fsm.ErrTooMany, ctx.Err())
		}
	}
	s.wakeOne() // wake the next goroutine: several slots may have been freed with one signal
	return nil
}

// give returns a slot.
func (s *slots) give() {
	s.taken.Add(-1)
	if s.waiting.Load() > 0 {
		s.wakeOne()
	}
}

// wakeOne wakes one of the goroutines that wait.
func (s *slots) wakeOne() {
	select {
	case s.freed <- struct{}{}:
	default:
	}
}
