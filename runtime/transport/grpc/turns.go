package grpc

import (
	"context"
	"sync"
)

// turns bounds the attempts to connect that run at the same time. If many nodes start on a few
// processors and dial all others at once, no handshake ends within its limit, and each one begins again.
// So the bound is halved when a peer that was reached has not answered in time, and grows by one
// with each success.
type turns struct {
	mu      sync.Mutex
	most    int
	running int
	waiting []chan struct{} // the first has waited longest
}

// take waits for a turn. Each call that returns nil must be followed by a call of give.
func (t *turns) take(ctx context.Context) error {
	t.mu.Lock()
	if t.running < t.most {
		t.running++
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	t.waiting = append(t.waiting, turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range t.waiting {
		if w == turn {
			t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
			return ctx.Err()
		}
	}
	t.running-- // the turn has come at the same time
	t.next()
	return ctx.Err()
}

// outcome is how an attempt to connect has ended.
type outcome int

const (
	attemptFailed   outcome = iota // for a reason that says nothing about the load
	attemptTimedOut                // the peer was reached, and has not answered in time
	attemptSucceeded
)

// give ends a turn.
func (t *turns) give(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o {
	case attemptTimedOut:
		t.most = max(1, t.most/2)
	case attemptSucceeded:
		t.most = min(t.most+1, dialingMax)
	}
	t.running--
	t.next()
}

// next lets those go on that wait, as far as there are turns. The lock must be held.
func (t *turns) next() {
	for len(t.waiting) > 0 && t.running < t.most {
		close(t.waiting[0])
		t.waiting = t.waiting[1:]
		t.running++
	}
}
