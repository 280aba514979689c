package piper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// past records the history of a watched instance, to be compared with the counts of the
// pool.
type past struct {
	bodies       []*body
	renews       int         // number of calls of Renew
	restartsSeen map[int]int // by processor: number of restarts reported to the instance
	closed       map[int]bool
	rejected     int // number of messages whose last attempt failed
	retrying     int // number of messages that wait for another attempt
	refused      int // number of messages that arrived after the instance had failed and was not restarted
	state        any // the state of the last body
	hung         atomic.Int64
}

// figures are counts of a processor's instances that the pool counts as well.
type figures struct {
	restarts, letters, hangs, late, closes int
	unseen                                 int // restarts at the end of Run, about which receivers may get no event
}

// delivery is a piper.Delivery with the number of attempts as its receiver counts them.
type delivery[T any] struct {
	piper.Delivery[T]
	attempts int
}

// drainWatched is Drain for a watched instance: one message at a time.
func (p *pair[T]) drainWatched(budget int) (n int, err error) {
	if drains := p.to.proc.drains; drains != nil {
		drains(p.to)
	}
	for n < budget && err == nil && !p.to.MustYield() {
		i := p.retryLane()
		if i < 0 {
			var ok bool
			if i, ok = p.takeNext(); !ok {
				break
			}
		}
		if i < len(p.lanes) {
			err = p.handleCurrent(i)
		}
		n++
	}
	return n, err
}

// retryLane finds the lane whose message must be handled again.
func (p *pair[T]) retryLane() int {
	for i := range p.deliveries {
		if p.deliveries[i].Again() {
			return i
		}
	}
	return -1
}

// takeNext moves the next message into the delivery of its lane. ok is false if the message
// was dropped in the meantime.
func (p *pair[T]) takeNext() (i int, ok bool) {
	edge, ok := p.Next()
	n := uint64(0)
	if len(p.lanes) > 1 {
		order := p.order()
		n = order.N
		p.Handling(order.Edge) // -1 if there is none, as in generated code
	}
	if !ok {
		return 0, false
	}
	if len(p.lanes) == 1 {
		if n, ok = p.lanes[0].first(); !ok {
			return 0, false
		}
	}
	for p.lanes[i].head().Index() != edge {
		i++
	}
	m, ok := p.lanes[i].take(n)
	if !ok {
		return len(p.lanes), true
	}
	p.deliveries[i].attempts = 0
	p.deliveries[i].Take(&p.Link, edge, m)
	return i, true
}

// handleCurrent handles the message in a delivery.
func (p *pair[T]) handleCurrent(i int) error {
	h, c := &p.deliveries[i], p.to
	if c.HasFailed() {
		if h.attempts == 0 {
			c.past.refused++
		}
		h.Discard()
		return nil
	}
	h.attempts++
	if h.attempts > c.proc.watch.Attempts {
		c.violated("attempt %d at a message, more than allowed", h.attempts)
	}
	if c.attempt = h.attempts; c.attempt > 1 {
		c.past.retrying--
	}
	m := h.Copy()
	if err := p.call(m); err != nil {
		return err
	}
	h.Done()
	return nil
}

// Renew makes another body.
func (c *cell) Renew(ctx context.Context) (func(), error) {
	if c.proc.watch == nil {
		return nil, errors.New("an instance without a watch cannot be renewed")
	}
	c.top.mu.Lock()
	c.past.renews++
	n := c.past.renews
	c.top.mu.Unlock()
	if c.proc.make != nil {
		if err := c.proc.make(c, n); err != nil {
			return nil, err
		}
	}
	if c.proc.renew != nil {
		if err := c.proc.renew(ctx); err != nil {
			return nil, err
		}
	}
	return func() { c.adopt() }, nil
}

func (c *cell) adopt() {
	c.past.hung.Load()
	if b := c.body; b.inited && !b.closed && !b.left {
		c.violated("an instance is restarted before Close of the previous one")
	}
	b := &body{inited: true}
	if c.IsFresh() {
		s := *c.sender
		s.position = c.Position()
		c.sender = &s
	}
	c.body = b
	c.past.bodies = append(c.past.bodies, b)
	if c.proc.init != nil {
		c.proc.init(c, nil)
	}
	c.top.mu.Lock()
	c.top.figure[c.index].restarts++
	if piper.Ended(c.top.pool) {
		c.top.figure[c.index].unseen++
	}
	c.top.mu.Unlock()
}

// DeadLetter sends a message about a message that could not be handled.
func (c *cell) DeadLetter(d topo.DeadLetter) bool {
	if c.proc.deadLetterEdge == 0 {
		return false
	}
	if d.Processor != c.top.name(c.index) || d.Instance != c.number || d.Err == nil || d.Attempts < 1 || d.Attempts > c.proc.watch.Attempts {
		c.violated("wrong dead letter: %+v", d)
	}
	c.top.mu.Lock()
	c.top.figure[c.index].letters++
	c.top.mu.Unlock()
	c.put(target{c.proc.deadLetterEdge, 0}, message{})
	return true
}

// Event checks an event of an input.
func (c *cell) Event(e piper.Event) error {
	if c.past.restartsSeen == nil {
		c.past.restartsSeen, c.past.closed = make(map[int]int), make(map[int]bool)
	}
	switch e.Kind {
	case piper.EventRestarted:
		c.past.restartsSeen[e.Index]++
	case piper.EventClosed:
		if c.top.edges[e.Index].to != c.index {
			c.violated("wrong event: edge %d is closed", e.Index)
		}
		c.past.closed[e.Index] = true
	}
	return c.called(callEvent, func() error {
		if c.proc.event == nil {
			return nil
		}
		return c.proc.event(c, fmt.Sprint(e))
	})
}

// countLoss counts the current message, or tick, that is given up if its handler fails now.
// broken means that the handler does not return.
func (c *cell) countLoss(broken bool) {
	w := c.proc.watch
	switch c.within {
	case callTick:
		c.past.rejected++
	case callReceive, callInternal:
		if c.attempt >= w.Attempts || !broken && w.Then == piper.ThenSkip {
			c.past.rejected++
		} else {
			c.past.retrying++
		}
	}
}

// checkBodies checks Close and Finish of all bodies.
func (top *topology) checkBodies(whole bool) {
	for _, c := range top.all {
		for i, b := range c.past.bodies {
			if b.closed != (b.inited && !b.left) && whole {
				top.violated("cell %d, body %d: Init was called %v, Close %v, abandoned %v", c.stamps.id, i, b.inited, b.closed, b.left)
			}
		}
		if whole && !c.HasFailed() && c.finished != (c.proc.finish != nil) {
			top.violated("cell %d: Finish called: %v", c.stamps.id, c.finished)
		}
	}
}

// checkFinished checks that Finish was called on each instance. It is for a Run that has not
// reported an instance that was given up.
func (top *topology) checkFinished() {
	for _, c := range top.all {
		if c.proc.finish != nil && !c.finished {
			top.violated("cell %d: Finish was not called, and Run does not report it", c.stamps.id)
		}
	}
}

// checkFaults compares the counts of the pool with those of the cells.
func (top *topology) checkFaults() {
	s := top.pool.Snapshot()
	top.mu.Lock()
	figures := slices.Clone(top.figure)
	top.mu.Unlock()
	for i, p := range s.Processors {
		if top.procs[i].watch == nil {
			continue
		}
		f, seen := p.Faults, figures[i]
		lost := 0
		for _, c := range top.cells[i] {
			if lost += c.past.rejected; c.HasFailed() {
				lost += c.past.retrying + c.past.refused // there was no further attempt
			}
		}
		if f.Restarts != uint64(seen.restarts) || f.DeadLetters != uint64(seen.letters) || f.DeadLetters+f.Dropped != uint64(lost) ||
			f.Abandoned > uint64(seen.hangs+seen.late+seen.closes) || f.Abandoned+uint64(piper.Making(top.pool, i)) < uint64(seen.hangs+seen.late+seen.closes) ||
			f.HealthCheckKills != f.Abandoned-uint64(seen.closes) {
			top.violated("processor %s: the pool counts %+v, the cells %+v and %d messages given up", p.Name, *f, seen, lost)
		}
	}
	for _, c := range top.all {
		if c.proc.events && !c.HasFailed() {
			top.checkEvents(c)
		}
	}
}

// checkEvents checks the events that an instance got.
func (top *topology) checkEvents(c *cell) {
	from := make(map[int]bool)
	for i, e := range top.edges {
		if e.to != c.index || e.from == timer || e.from == c.index {
			continue
		}
		from[e.from] = true
		if top.group[e.from] != top.group[c.index] && !c.past.closed[i] {
			top.violated("cell %d did not get the event that edge %d is closed", c.stamps.id, i)
		}
	}
	for p := range from {
		reported, restarts := c.past.restartsSeen[p], top.figure[p].restarts
		late := reported < restarts && piper.Stopped(top.pool) || // a source may be restarted after its receivers have finished
			reported <= restarts && reported >= restarts-top.figure[p].unseen
		if top.group[p] != top.group[c.index] && reported != restarts && !late {
			top.violated("cell %d got %d events of restarts of %s, want %d", c.stamps.id, c.past.restartsSeen[p], top.name(p), top.figure[p].restarts)
		}
	}
}
