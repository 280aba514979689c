package backlog

import "sync"

// Latest holds the newest value that was not taken yet. The zero value is empty. Any
// goroutine may use it.
type Latest[E comparable] struct {
	mu    sync.Mutex
	value E
	waits bool
}

// Put stores a value, unless it equals the previous value. It reports whether no value
// was waiting; then the receiver must be woken.
func (l *Latest[E]) Put(value E) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if value == l.value {
		return false
	}
	first = !l.waits
	l.value, l.waits = value, true
	return first
}

// Take returns the newest value, once.
func (l *Latest[E]) Take() (value E, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	value, ok, l.waits = l.value, l.waits, false
	return value, ok
}
