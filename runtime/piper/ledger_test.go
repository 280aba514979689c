package piper_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// run runs the topology. If Run does not return, it fails the test and prints all
// stacks.
func (top *topology) run(t testing.TB, ctx context.Context) error {
	t.Helper()
	return top.result(t, top.start(ctx))
}

// result waits for Run to return. On a busy computer Run may take long, but it must
// make progress.
func (top *topology) result(t testing.TB, result <-chan error) error {
	t.Helper()
	limit := hangAfter
	if time.Now().Year() == 2000 { // in a synctest bubble, with virtual time
		limit = hangAfterVirtual
	}
	for before := uint64(0); ; {
		select {
		case err := <-result:
			return err
		case <-time.After(limit):
		}
		received := uint64(0)
		for _, e := range top.pool.Snapshot().Edges {
			received += e.Received
		}
		if received == before {
			t.Fatalf("Run hangs; %s\n%s", top.figures(), stacks())
		}
		before = received
	}
}

// hangAfterVirtual is longer than several drain timeouts, because each Close may hang
// for one.
const hangAfterVirtual = 10 * time.Minute

// start runs the topology in a new goroutine.
func (top *topology) start(ctx context.Context) <-chan error {
	result := make(chan error, 1)
	go func() { result <- top.pool.Run(ctx) }()
	return result
}

// figures lists what is left on each edge.
func (top *topology) figures() string {
	var b strings.Builder
	for i, f := range top.pool.Snapshot().Edges {
		if f.Len > 0 {
			fmt.Fprintf(&b, "edge %d (%s -> %s): %+v; ", i, f.From, f.To, f)
		}
	}
	return b.String()
}

// report fails the test if a guarantee was violated.
func (top *topology) report(t testing.TB) bool {
	t.Helper()
	top.mu.Lock()
	defer top.mu.Unlock()
	for _, v := range top.violations {
		t.Errorf("%s", v)
	}
	return len(top.violations) == 0
}

// check compares, after Run, the sent and handled messages with the pool's figures. If
// the topology ended with nothing left to do, no message may be left.
func (top *topology) check(t testing.TB, whole bool) bool {
	t.Helper()
	if top.faulty && !whole {
		return top.report(t) // handlers may still hang
	}
	top.checkFigures(whole)
	top.checkLifecycles(whole)
	return top.report(t)
}

func (top *topology) checkFigures(whole bool) {
	sent, got, missed := top.totals(whole)
	for i, f := range top.pool.Snapshot().Edges {
		e := top.edges[i]
		if f.Len < 0 || f.Sent != f.Received+f.Dropped+uint64(f.Len) {
			top.violated("edge %d: sent is not received + dropped + queued: %+v", i, f)
		}
		if e.from != timer && (e.full == block || e.full == fail) && f.Dropped > 0 && !top.faulty {
			top.violated("edge %d must not drop messages, but dropped %d", i, f.Dropped)
		}
		if !whole {
			continue
		}
		if e.from == timer {
			if f.Received != got[i] {
				top.violated("edge %d: %d ticks were handled; the pool counts %+v", i, got[i], f)
			}
			continue
		}
		if f.Len != 0 {
			top.violated("edge %d: %d messages are left", i, f.Len)
		}
		if f.Sent != sent[i] || f.Received != got[i] || f.Dropped != missed[i] {
			top.violated("edge %d: sent %d, handled %d, missed %d; the pool counts %+v", i, sent[i], got[i], missed[i], f)
		}
	}
}

// totals counts for each edge the messages that were sent, that were handled, and that
// were skipped: sent before a handled message but not handled.
func (top *topology) totals(whole bool) (sent, got, missed []uint64) {
	n := len(top.edges)
	sent, got, missed = make([]uint64, n), make([]uint64, n), make([]uint64, n)
	add := func(sum, of []uint64) {
		for i, v := range of {
			sum[i] += v
		}
	}
	senders := make([]*stamps, 0, len(top.all)+len(top.callers))
	for _, c := range top.all {
		add(got, c.got)
		add(missed, c.missed)
		senders = append(senders, &c.stamps)
	}
	for _, g := range top.callers {
		senders = append(senders, &g.stamps)
	}
	for _, s := range senders {
		add(sent, s.sent)
		for to, r := range s.to {
			last := top.all[to].from[s.id]
			for e, lane := range r.lane {
				if last != nil {
					lane -= last.lane[e]
				}
				missed[e] += lane
				if lane > 0 && top.edges[e].full == dropOldest && s.id < len(top.all) && whole && !top.faulty {
					top.violated("edge %d drops the oldest message, but lost the last %d of sender %d", e, lane, s.id)
				}
			}
		}
	}
	return sent, got, missed
}

// checkLifecycles checks the order of Init, Finish and Close.
func (top *topology) checkLifecycles(whole bool) {
	if top.faulty {
		top.checkBodies(whole)
		return
	}
	var inits, finishes, closes []*cell
	for _, e := range top.events {
		switch e.kind {
		case "Init":
			inits = append(inits, e.cell)
		case "Finish":
			finishes = append(finishes, e.cell)
		case "Close":
			closes = append(closes, e.cell)
		}
	}
	for i, c := range inits {
		if c != top.all[i] {
			top.violated("Init was not called in file order")
			break
		}
	}
	if len(closes) != len(inits) {
		top.violated("Init was called %d times and Close %d times", len(inits), len(closes))
		return
	}
	for i, c := range closes {
		if c != inits[len(inits)-1-i] {
			top.violated("Close was not called in reverse order")
			break
		}
	}
	if whole {
		top.checkFinishes(finishes)
	}
}

// checkFinishes checks that Finish of each instance was called once, in file order
// within its group.
func (top *topology) checkFinishes(finishes []*cell) {
	last := make(map[int]int) // by group: id of the last cell
	for _, c := range finishes {
		g := top.group[c.index]
		if id, ok := last[g]; ok && id >= c.stamps.id {
			top.violated("Finish of instance %d was called after Finish of instance %d", c.stamps.id, id)
		}
		last[g] = c.stamps.id
	}
	for _, c := range top.all {
		if c.finished != (c.proc.finish != nil) {
			top.violated("processor %s, instance %d: Finish called %v", top.name(c.index), c.number, c.finished)
		}
	}
}

// checkUpstream checks, when Finish is called, that no message can come from outside
// the group any more and that none is left.
func (top *topology) checkUpstream(c *cell) {
	for i, f := range top.pool.Snapshot().Edges {
		e := top.edges[i]
		if e.to != c.index || e.from == timer || top.group[e.from] == top.group[e.to] {
			continue
		}
		if f.Len > 0 {
			top.violated("Finish of %s was called while %d messages of edge %d are queued", top.name(c.index), f.Len, i)
		}
	}
}
