package server

import (
	"container/list"
	"sync"
	"time"
)

// slow has the bodies that clients are sending, or the responses that they are reading, oldest first.
// If there are too many bytes, the oldest one ends, so that clients that send or read nothing do not
// refuse the requests of others.
type slow struct {
	after time.Duration // younger ones do not end
	mu    sync.Mutex
	all   list.List // of transfer
}

// A transfer of a body or a response is in progress.
type transfer struct {
	begin time.Time
	end   func() // ends it, and stops the counting of its bytes
}

// A network takes less time for the largest ones. If younger ones made room too, many clients with large
// requests would end those of each other, and none would arrive.
const (
	slowBody     = time.Second            // 64 MiB each second are more than an attacker sends for long
	slowResponse = 250 * time.Millisecond // less, because a short request is enough for a response of 8 MiB
)

// add adds a transfer, until the element is removed or end is called.
func (s *slow) add(end func()) *list.Element {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.PushBack(transfer{time.Now(), end})
}

// remove removes a transfer. Its function is not called afterwards.
func (s *slow) remove(e *list.Element) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Remove(e) // nothing happens if it has been ended
}

// makeRoom ends the oldest transfer. It reports false if none has taken long enough.
func (s *slow) makeRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := s.all.Front()
	if oldest == nil || time.Since(oldest.Value.(transfer).begin) < s.after {
		return false
	}
	s.all.Remove(oldest).(transfer).end()
	return true
}
