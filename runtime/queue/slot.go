package queue

import "sync/atomic"

// Slot holds one message. While it holds one, further messages are refused and counted.
// The zero value must be initialized with Head.Init. It has one producer and one
// consumer at a time.
type Slot[T any] struct {
	Head  Head
	held  atomic.Bool
	value T
}

// Offer stores m, visible at once. If the slot is full, it counts m as dropped and
// returns false.
func (s *Slot[T]) Offer(m T) bool {
	if s.held.Load() {
		s.Head.Refuse()
		return false
	}
	s.value = m
	s.Head.base.StoreRelease(s.Head.base.Own() + 1)
	s.Head.published.Store(s.Head.base.Own())
	s.held.Store(true)
	return true
}

// Pop removes the message. It returns false if there is none.
func (s *Slot[T]) Pop() (m T, ok bool) {
	if !s.held.Load() {
		return m, false
	}
	m = s.value
	s.Head.take(1)
	s.held.Store(false)
	return m, true
}
