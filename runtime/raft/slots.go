package raft

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/fsm"
)

// slots bound how much is under way. They are what a channel with a buffer would be, and
// cost less while there are some left.
type slots struct {
	max     int64
	taken   atomic.Int64
	waiting atomic.Int64
	freed   chan struct{} // room for one: somebody who waits is to try again
}

func newSlots(n int) *slots { return &slots{max: int64(n), freed: make(chan struct{}, 1)} }

// try takes a slot that is left.
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

// take waits for a slot, behind those who wait already.
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
	s.wakeOne() // the next one: several slots may have been given with one call
	return nil
}

// give gives back a slot.
func (s *slots) give() {
	s.taken.Add(-1)
	if s.waiting.Load() > 0 {
		s.wakeOne()
	}
}

// call has one of those who wait try again.
func (s *slots) wakeOne() {
	select {
	case s.freed <- struct{}{}:
	default:
	}
}
