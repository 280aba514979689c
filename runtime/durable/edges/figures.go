package edges

import (
	"context"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/piper"
)

// figures counts the executions that this process knows, by edge: the executions that its
// senders have started, and others from their first activation on.
type figures struct {
	now      func() time.Time
	knownMax int

	mu    sync.Mutex
	known map[string]*known // by id, until the check after the end
	of    map[int]*piper.DurableFigures
	// checks has the known executions in the order of their next check. Those in checks[k] were
	// checked k times.
	checks [checkTimes][]*known
}

// known is an execution that was counted.
type known struct {
	id    string
	edge  int
	due   time.Time // of the next check
	ended bool
}

// Not every end of an execution is seen in this process: it may run in another one, or be
// canceled while it sleeps. So the store is asked, more and more seldom.
const (
	firstCheck = 10 * time.Second // twice as long before each further check, up to 85 minutes
	checkTimes = 10
	// knownMax bounds the memory for executions. Further ones are not counted.
	knownMax = 1_000_000
)

func newFigures(edges []Edge) *figures {
	f := &figures{now: time.Now, knownMax: knownMax, known: make(map[string]*known), of: make(map[int]*piper.DurableFigures, len(edges))}
	for _, e := range edges {
		f.of[e.Index] = new(piper.DurableFigures)
	}
	return f
}

// add counts an execution. It returns false if it is known already.
func (f *figures) add(edge int, id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known[id] != nil || len(f.known) >= f.knownMax {
		return false
	}
	k := &known{id: id, edge: edge, due: f.now().Add(firstCheck)}
	f.known[id] = k
	f.checks[0] = append(f.checks[0], k)
	of := f.of[edge]
	of.Sent++
	of.Len++
	return true
}

// end counts an execution that has ended.
func (f *figures) end(id string, handled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.known[id]
	if k == nil || k.ended {
		return
	}
	k.ended = true
	of := f.of[k.edge]
	of.Len--
	if handled {
		of.Received++
	} else {
		of.Dropped++
	}
}

func (f *figures) read(edge int) piper.DurableFigures {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of := f.of[edge]; of != nil {
		return *of
	}
	return piper.DurableFigures{}
}

// outcome counts the outcome of an activation.
func (f *figures) outcome(id string, o durable.Outcome) {
	switch {
	case o.State == durable.Completed, o.State == durable.Failed:
		f.end(id, true)
	case o.State == durable.Lost && isEnd(o.Err):
		f.end(id, false)
	}
}

// check asks for the states of the executions whose check is due, until there is no answer.
func (f *figures) check(stateOf func(id string) (protocol.PromiseState, bool)) {
	for {
		id, ok := f.nextCheck()
		if !ok {
			return
		}
		state, ok := stateOf(id)
		if !ok {
			return
		}
		switch state {
		case protocol.Resolved, protocol.Rejected:
			f.end(id, true)
		case protocol.RejectedCancel, protocol.RejectedTimeout:
			f.end(id, false)
		}
	}
}

// nextCheck returns an execution whose check is due, and forgets executions that have ended.
func (f *figures) nextCheck() (id string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	for i := range f.checks {
		for len(f.checks[i]) > 0 && !now.Before(f.checks[i][0].due) {
			k := f.checks[i][0]
			f.checks[i][0] = nil
			f.checks[i] = f.checks[i][1:]
			if k.ended {
				if f.known[k.id] == k {
					delete(f.known, k.id)
				}
				continue
			}
			next := min(i+1, checkTimes-1)
			k.due = now.Add(firstCheck << next)
			f.checks[next] = append(f.checks[next], k)
			return k.id, true
		}
	}
	return "", false
}

// checkFigures checks the executions until Run ends.
func (e *Carrier) checkFigures() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			e.figures.check(e.stateOf)
		case <-e.over:
			return
		}
	}
}

// stateOf is the state of a promise. It is false if the store does not answer.
func (e *Carrier) stateOf(id string) (protocol.PromiseState, bool) {
	r, err := e.source.Do(context.Background(), protocol.PromiseGet{ID: id})
	if err != nil || r.Promise == nil {
		return "", false
	}
	return r.Promise.State, true
}
