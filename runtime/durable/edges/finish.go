package edges

import (
	"context"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// finish closes the durable edges into groups of processors whose other inputs are closed, when
// no promise of the topology is pending, or one waits for an instance that was given up.
type finish struct {
	edges *Carrier

	mu     sync.Mutex
	groups map[int]bool
	gaveUp bool // an execution waits for an instance that was given up
	wake   chan struct{}
	over   bool
	due    bool // under a Stepper: something has changed since the last look
}

// lookEvery is how often the store is asked although no handler has returned: a promise may
// also time out.
const lookEvery = time.Second

// add adds a group whose other inputs are closed.
func (f *finish) add(group int) {
	f.mu.Lock()
	if f.groups == nil {
		f.groups = make(map[int]bool)
	}
	f.groups[group] = true
	f.mu.Unlock()
	f.check()
}

// giveUp reports that an execution waits for an instance that was given up, so that the topology
// cannot end all executions.
func (f *finish) giveUp() {
	f.mu.Lock()
	f.gaveUp = true
	f.mu.Unlock()
	f.check()
}

// hasGivenUp reports whether giveUp was called.
func (f *finish) hasGivenUp() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gaveUp
}

// check makes run look again.
func (f *finish) check() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.due = true
	if f.wake != nil && len(f.groups) > 0 {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

func (f *finish) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over = true; f.wake != nil {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

// run closes groups until Run ends.
func (f *finish) run() {
	wake := make(chan struct{}, 1)
	f.mu.Lock()
	f.wake = wake
	f.mu.Unlock()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		f.look()
		select {
		case <-wake:
		case <-ticker.C:
		}
		f.mu.Lock()
		over := f.over
		f.mu.Unlock()
		if over {
			return
		}
	}
}

// look closes the groups that wait if no promise is pending. Programs outside may create one at
// any time. After an instance was given up, it closes the groups all the same, and the next process
// continues the executions.
func (f *finish) look() {
	f.mu.Lock()
	waiting := make([]int, 0, len(f.groups))
	for g := range f.groups {
		waiting = append(waiting, g)
	}
	f.due = false
	gaveUp := f.gaveUp
	f.mu.Unlock()
	if len(waiting) == 0 || f.edges.config.shared() || f.edges.replicated() || !gaveUp && f.edges.pending() {
		return
	}
	f.mu.Lock()
	for _, g := range waiting {
		delete(f.groups, g)
	}
	f.mu.Unlock()
	for _, g := range waiting {
		f.edges.pool.CloseDurable(g)
	}
}

// pending reports whether a promise for the topology is pending, or whether that is unknown.
func (e *Carrier) pending() bool {
	w, err := e.use()
	if err != nil {
		return true
	}
	search := protocol.PromiseSearch{State: protocol.Pending, Tags: map[string]string{protocol.TagTarget: w.Target()}, Limit: 1}
	r, err := e.source.Do(context.Background(), search)
	return err != nil || r.Status != protocol.OK || len(r.Promises) > 0
}
