package engine

import (
	"bytes"
	"math"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// retries is what the committer remembers of retries that it left out: the message of the
// task waits for a worker already, or has no place. Such a retry would be written to the
// store and have no effect. It stays due, and is looked at again in turns, as often as it
// would be carried out. There are no turns while all workers are absent or busy.
type retries struct {
	interval time.Duration // of core.Config.RetryTimeout

	front    []byte // the timeouts below this key were looked at, and only retries are left there
	left     int    // their number, or more
	turning  bool
	position []byte        // the next retry of the turn
	found    int           // retries that the turn has left out again
	turnAt   time.Duration // the next step of the turn, or the begin of one
}

// leaveOut returns which retries a tick leaves out. With Debug it leaves out none: a test
// then sees each retry.
func (e *Engine) leaveOut(turn bool) *core.Retries {
	if e.config.Debug {
		return nil
	}
	r := &core.Retries{From: e.retries.front, Wanted: e.newPlaces().take}
	if turn {
		r.From = e.retries.position
	}
	return r
}

// due reports whether a step of a turn is due, and begins a turn if the hub has places.
func (r *retries) due(elapsed time.Duration, h *hub) bool {
	if r.left == 0 || elapsed < r.turnAt {
		return false
	}
	r.turning = r.turning || h.takeFreed()
	return r.turning
}

// next returns the time of the next step of a turn. A turn begins when the committer looks
// at the clock.
func (r *retries) next() time.Duration {
	if r.turning {
		return r.turnAt
	}
	return math.MaxInt64
}

// frontAfter returns the front after a batch.
func (r *retries) frontAfter(b *batch) []byte {
	if b.retries == nil || bytes.Compare(b.retries.From, r.front) < 0 {
		return r.front
	}
	return b.retries.From
}

// note notes which retries a tick has left out, after its commit.
func (r *retries) note(b *batch, elapsed time.Duration) {
	if b.retries == nil {
		return
	}
	front := r.front
	r.front = r.frontAfter(b)
	if !b.turn {
		if r.left == 0 {
			r.turnAt = elapsed + r.interval
		}
		r.left += b.retries.Left
		return
	}
	r.position = b.retries.From
	r.found += b.retries.Left
	r.turnAt = elapsed + r.pause(b.retries.Passed)
	if !b.more || bytes.Compare(r.position, front) >= 0 {
		r.turning, r.position, r.left, r.found = false, nil, r.found, 0
	}
}

// pause returns the time after a step that has looked at a number of retries. A turn takes
// the interval.
func (r *retries) pause(passed int) time.Duration {
	return time.Duration(float64(r.interval) * min(1, float64(passed)/float64(r.left)))
}

// places are the free places for execute messages during a tick.
type places struct {
	engine *Engine
	free   map[string]int // by address
}

func (e *Engine) newPlaces() *places { return &places{e, map[string]int{}} }

// take takes the place for the message of a task. It reports false if there is none, or if
// the message waits for a worker already.
func (p *places) take(address string, t protocol.TaskRef) bool {
	r := parse(address)
	h := p.engine.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if version, waits := h.held.version(t.ID); waits {
		return version != t.Version
	}
	if _, known := p.free[address]; !known {
		p.free[address] = h.free(r, address)
	}
	if p.free[address] <= 0 {
		h.lacking = true
		h.freed = h.freed || r.kind == routePush // a receiver does not say when it has a place again
		return false
	}
	p.free[address]--
	return true
}

// free returns how many execute messages for an address have a place.
func (h *hub) free(r route, address string) (n int) {
	switch r.kind {
	case routePush:
		return h.pushable(address)
	case routeNone:
		return 0
	}
	if g := h.groups[r.group]; g != nil {
		for _, c := range g.order {
			if r.reaches(c.group, c.pid) {
				n += max(0, h.bufferMax-len(c.waiting))
			}
		}
	}
	return n + h.held.free(key(r))
}

// takeFreed reports whether places for messages were freed since the last call.
func (h *hub) takeFreed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.freed {
		return false
	}
	h.freed, h.lacking = false, false // the turn looks at all retries again
	return true
}
