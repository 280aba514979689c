package durable

import (
	"context"
	"fmt"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// await returns the settled promise of a handle.
func (e *execution) await(ctx context.Context, h handle) (*protocol.Promise, error) {
	if ctx.Done() != e.ctx.Done() {
		return nil, e.misuse("Wait is called with a context that ends before the function does. Use After and Any for a timeout")
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	p := e.current(h)
	if p.State == protocol.Pending {
		if err := e.wait(h.ID()); err != nil {
			return nil, e.ending(err)
		}
		p = e.settled[h.ID()]
	}
	if s, _, ok := e.journal.parse(p); ok && p.State != protocol.Resolved {
		e.noteFailure(int(s.position))
	}
	return p, nil
}

// current is the newest known state of a promise.
func (e *execution) current(h handle) *protocol.Promise {
	if p := e.settled[h.ID()]; p != nil {
		return p
	}
	return h.promise
}

// wait suspends the execution until one of the promises is settled. It returns nil if one
// of them is settled by now: one of Get may have been settled before an earlier activation
// went on.
func (e *execution) wait(ids ...string) error {
	if err := e.proceed(); err != nil {
		return err
	}
	if p := e.journal.records[e.journal.at(e.position+1)]; p != nil {
		if settled, err := e.refresh(ids); settled || err != nil {
			return err
		}
		return e.diverge(fmt.Sprintf("after position %d it waits for %q, and the record %s is of %q", e.position, ids[0], p.ID, p.Tags[tagStep]))
	}
	return e.backend.suspend(e, ids...)
}

// refresh reads promises, and reports whether one of them is settled.
func (e *execution) refresh(ids []string) (settled bool, err error) {
	for _, id := range ids {
		p, err := e.backend.get(e, id)
		if err != nil {
			return false, err
		}
		if p.State != protocol.Pending {
			settled = true
			e.settled[id] = p
			e.journal.add(p) // for the next attempt
		}
	}
	return settled, nil
}

// any returns the index of the first handle whose promise is settled, and records it.
func (e *execution) any(handles []handle) (int, error) {
	if len(handles) == 0 {
		return 0, e.misuse("Any is called without a handle")
	}
	if err := e.enter(); err != nil {
		return 0, err
	}
	defer e.leave()
	p, s, err := e.next(nameAny)
	if err == nil && (p == nil || p.State == protocol.Pending) {
		p, err = e.choose(handles, s, p)
	}
	if err != nil {
		return 0, e.ending(err)
	}
	index := -1
	data, err := outcomeOf(p)
	if err == nil {
		err = unmarshal(data, &index)
	}
	if err != nil || index < 0 || index >= len(handles) {
		return 0, e.ending(e.diverge(fmt.Sprintf("at position %d it waits for one of %d promises, and the record has the index %d", e.position, len(handles), index)))
	}
	return index, nil
}

// choose waits for one of the handles and records which one was settled first.
func (e *execution) choose(handles []handle, s slot, p *protocol.Promise) (*protocol.Promise, error) {
	ids := make([]string, len(handles))
	for i, h := range handles {
		if h.promise == nil {
			return nil, errNotStarted
		}
		ids[i] = h.ID()
	}
	for {
		first := -1
		for i, h := range handles {
			if c := e.current(h); c.State != protocol.Pending && (first < 0 || settledAt(c) < settledAt(e.current(handles[first]))) {
				first = i
			}
		}
		if first >= 0 {
			value, err := encode(first)
			if err != nil {
				return nil, err
			}
			return e.settle(nameAny, s, p, protocol.Resolved, value)
		}
		if err := e.wait(ids...); err != nil {
			return nil, err
		}
	}
}

func settledAt(p *protocol.Promise) int64 {
	if p.SettledAt == nil {
		return 0
	}
	return *p.SettledAt
}
