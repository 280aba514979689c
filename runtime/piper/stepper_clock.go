package piper

import "time"

// The following methods let several Steppers run with one clock, for example those of the
// nodes of a cluster.

// Turn makes one handler call. It returns false if no handler can be called before the
// clock advances or a message comes from outside.
func (s *Stepper) Turn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn()
}

// Next returns how long it takes until the next timer is due. ok is false if there is no
// timer.
func (s *Stepper) Next() (d time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.due()
	if s.ended || !ok {
		return 0, false
	}
	return time.Duration(max(0, at-s.now.Load())), true
}

// Skip advances the clock by d without a handler call. Timers that are due in this time
// cause calls in the next turns.
func (s *Stepper) Skip(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.now.Load() + int64(d)
	for !s.ended {
		at, ok := s.due()
		if !ok || at > until {
			break
		}
		s.jump()
	}
	s.now.Store(max(s.now.Load(), until))
}

// Ended reports whether the topology has ended.
func (s *Stepper) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}
