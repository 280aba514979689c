package queue

import (
	"sync/atomic"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// Slot holds one message; while it does, further ones are refused and counted.
// The zero value needs Init. One producer and one consumer at a time.
type Slot[T any] struct {
	Head  Head
	held  atomic.Bool
	value T
}

// Offer puts m, visible at once, or counts it as dropped and reports false.
func (s *Slot[T]) Offer(m T) bool {
	if s.held.Load() && !bug.On(bug.TickQueues) {
		s.Head.Refuse()
		return false
	}
	s.value = m
	s.Head.base.StoreRelease(s.Head.base.Own() + 1)
	s.Head.published.Store(s.Head.base.Own())
	s.held.Store(true)
	return true
}

// Pop takes the message, or reports false where there is none.
func (s *Slot[T]) Pop() (m T, ok bool) {
	if !s.held.Load() {
		return m, false
	}
	m = s.value
	s.Head.take(1)
	s.held.Store(false)
	return m, true
}
