package queue

import (
	"sync/atomic"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// Slot holds one message; while it does, further ones are refused and counted.
// The zero value needs Init. One producer and one consumer at a time.
type Slot[T any] struct {
	Head
	held  atomic.Bool
	value T
}

// Offer puts m, visible at once, or counts it as dropped and reports false.
func (s *Slot[T]) Offer(m T) bool {
	if s.held.Load() && !bug.On(bug.TickQueues) {
		s.Refuse()
		return false
	}
	s.value = m
	s.base.StoreRelease(s.base.Own() + 1)
	s.published.Store(s.base.Own())
	s.held.Store(true)
	return true
}

// Pop takes the message, or reports false where there is none.
func (s *Slot[T]) Pop() (m T, ok bool) {
	if !s.held.Load() {
		return m, false
	}
	m = s.value
	s.take(1)
	s.held.Store(false)
	return m, true
}
