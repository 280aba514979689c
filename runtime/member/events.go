package member

import "sync"

// eventsMax limits the events that wait for a slow observer: several for each of 1,000
// members, about 3 MB.
const eventsMax = 16_384

// Events passes events to an observer, one at a time and in order, without making the
// detector wait. It is for implementations of [Detector].
type Events struct {
	observe func(Event)

	mu      sync.Mutex
	more    *sync.Cond
	waiting []Event
	closed  bool
	running sync.WaitGroup
}

// NewEvents returns a queue for an observer.
func NewEvents(observe func(Event)) *Events {
	e := &Events{observe: observe}
	e.more = sync.NewCond(&e.mu)
	return e
}

// Start starts the goroutine that calls the observer.
func (e *Events) Start() { e.running.Go(e.run) }

// Add queues an event and never blocks. When too many events wait, all are replaced by an
// EventLost: the observer must read the list of members, which is newer than all of them.
func (e *Events) Add(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) >= eventsMax {
		e.waiting = append(e.waiting[:0:0], Event{Kind: EventLost})
	}
	e.waiting = append(e.waiting, event)
	e.more.Signal()
}

// Close drops the events that wait, and returns when the observer does not run any more.
func (e *Events) Close() {
	e.mu.Lock()
	e.closed = true
	e.more.Signal()
	e.mu.Unlock()
	e.running.Wait()
}

func (e *Events) run() {
	for {
		e.mu.Lock()
		for len(e.waiting) == 0 && !e.closed {
			e.more.Wait()
		}
		events, closed := e.waiting, e.closed
		e.waiting = nil
		e.mu.Unlock()
		if closed {
			return
		}
		for _, event := range events {
			if e.isClosed() {
				return
			}
			e.observe(event)
		}
	}
}

func (e *Events) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}
