// Package backlog queues the events of a state machine for processors that may be
// slower than the state machine. The queue is bounded: if it is full, events are lost,
// and the next event shows the gap.
package backlog

import "sync"

// PerTurn is how many events a turn takes, because the queues of edges do not hold many
// messages above their capacity.
const PerTurn = 256

const (
	itemsMax = 1 << 16  // a processor that handles 100,000 events a second is then 0.6 s behind
	bytesMax = 64 << 20 // bytes of updates; the same limit as for updates that are sent to a slow follower from memory
)

// List holds the events that were not taken yet. The zero value is empty. Any goroutine
// may use it.
type List[E any] struct {
	mu    sync.Mutex
	items []Item[E]
	next  int // index of the first item that was not taken
	bytes int
	since uint64
	lost  int  // number of events lost since the list became full
	full  bool // set when the list is full, until half of it is taken
}

// Item is an event. All events with an index above Since and below the index of this
// event were items before it.
type Item[E any] struct {
	Since uint64
	Event E
	size  int
}

// Put adds an event with an index and a size in bytes, unless the list is full. Indices
// must not decrease. It reports whether the list was empty; then the receiver must be
// woken.
func (l *List[E]) Put(index uint64, size int, e E) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.len(); n >= itemsMax || l.bytes+size > bytesMax && n > 0 {
		l.full = true
	}
	if l.full {
		l.lost++
		l.since = index
		return false
	}
	l.items = append(l.items, Item[E]{l.since, e, size})
	l.bytes += size
	return l.len() == 1
}

func (l *List[E]) len() int { return len(l.items) - l.next }

// Begin records that events up to an index may never be put.
func (l *List[E]) Begin(index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = index
}

// Lose records that the event with the given index was taken but has not reached its
// receiver.
func (l *List[E]) Lose(index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = max(l.since, index)
	for i := l.next; i < len(l.items); i++ {
		l.items[i].Since = max(l.items[i].Since, index)
	}
}

// Take moves up to n events into used, a list that the caller no longer needs. It returns
// whether there are more events, and, once the list has room again, how many were lost
// before.
func (l *List[E]) Take(used []Item[E], n int) (items []Item[E], more bool, lost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.items[l.next : l.next+min(n, l.len())]
	items = append(used[:0], taken...)
	clear(taken)
	l.next += len(taken)
	for i := range items {
		l.bytes -= items[i].size
	}
	if l.next > len(l.items)/2 { // so that each item is moved at most once on average
		rest := copy(l.items, l.items[l.next:])
		clear(l.items[rest:])
		l.items, l.next = l.items[:rest], 0
	}
	if l.full && l.len() < itemsMax/2 && l.bytes < bytesMax/2 {
		lost, l.lost, l.full = l.lost, 0, false
	}
	return items, l.len() > 0, lost
}
