package durable

import (
	"context"
	"fmt"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// timerOf is the operation that creates a timer. The branch is the execution, so that the
// next acquisition returns it.
func (e *execution) timerOf(id, name string, d time.Duration) protocol.PromiseCreate {
	tags := e.tags(name, e.promise.ID, "global")
	tags[protocol.TagTimer] = "true"
	return protocol.PromiseCreate{ID: id, TimeoutAt: e.deadline(d), Tags: tags}
}

// deadline is the time after a duration, and at most the deadline of the execution.
func (e *execution) deadline(d time.Duration) int64 {
	ms := max(d, 0).Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++ // a timer is never early
	}
	return min(e.worker.now().UnixMilli()+ms, e.promise.TimeoutAt)
}

// timer records a timer.
func (e *execution) timer(d time.Duration) (*protocol.Promise, error) {
	return e.open(nameSleep, func(id string) (protocol.PromiseCreate, error) { return e.timerOf(id, nameSleep, d), nil })
}

// start records a call.
func (e *execution) start(call Call) (*protocol.Promise, error) {
	if call.ID != "" {
		return e.startNamed(call)
	}
	name := nameCall + call.Func
	return e.open(name, func(id string) (protocol.PromiseCreate, error) { return e.callOf(call, name, id) })
}

// callOf is the operation that creates the promise of a child.
func (e *execution) callOf(call Call, name, id string) (protocol.PromiseCreate, error) {
	if len(name) > nameMax {
		return protocol.PromiseCreate{}, e.misuse("the name of the function is too long")
	}
	create, err := callOf(call, id, e.worker.now())
	create.TimeoutAt = min(create.TimeoutAt, e.promise.TimeoutAt)
	for key, value := range e.tags(name, id, "global") {
		create.Tags[key] = value
	}
	return create, err
}

// startNamed records a call with an id of its own. The record at the position has the id,
// so that a change of the id on replay is found.
func (e *execution) startNamed(call Call) (*protocol.Promise, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	name := nameStart + call.Func
	p, s, err := e.next(name)
	if err != nil {
		return nil, e.ending(err)
	}
	if p == nil || p.State == protocol.Pending {
		return e.createNamed(call, name, s)
	}
	var id string
	data, err := outcomeOf(p)
	if err == nil {
		err = unmarshal(data, &id)
	}
	if err != nil || id != call.ID {
		return nil, e.ending(e.diverge(fmt.Sprintf("at position %d it calls %s with the id %q, and the recorded id is %q", e.position, call.Func, call.ID, id)))
	}
	child, err := e.backend.get(e, id)
	return child, e.ending(err)
}

// createNamed creates the promise of the call before its record: a record says that the
// promise exists.
func (e *execution) createNamed(call Call, name string, s slot) (*protocol.Promise, error) {
	create, err := e.callOf(call, name, call.ID)
	if err != nil {
		return nil, err
	}
	child, err := e.backend.fence(e, create)
	if err != nil {
		return nil, e.ending(err)
	}
	id, err := encode(call.ID)
	if err == nil {
		_, err = e.settle(name, s, e.journal.records[s], protocol.Resolved, id)
	}
	return child[0], e.ending(err)
}

// open creates the promise of the next position, or returns the recorded one.
func (e *execution) open(name string, create func(id string) (protocol.PromiseCreate, error)) (*protocol.Promise, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	p, s, err := e.next(name)
	if err != nil || p != nil {
		return p, e.ending(err)
	}
	op, err := create(e.journal.id(s))
	if err != nil {
		return nil, err
	}
	created, err := e.backend.fence(e, op)
	if err != nil {
		return nil, e.ending(err)
	}
	return created[0], e.ending(e.same(created[0], name))
}

// sleep suspends the execution for a duration.
func (e *execution) sleep(d time.Duration) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	p, s, err := e.next(nameSleep)
	if err == nil && p == nil {
		p, err = e.sleepUntil(e.timerOf(e.journal.id(s), nameSleep, d), d > 0)
	}
	if err == nil && p.State == protocol.Pending {
		err = e.wait(p.ID)
	}
	return e.ending(err)
}

// sleepUntil creates a timer. If its deadline is in the future, the suspension goes to the
// backend together with it.
func (e *execution) sleepUntil(timer protocol.PromiseCreate, future bool) (*protocol.Promise, error) {
	if future {
		return e.backend.suspendUntil(e, timer)
	}
	created, err := e.backend.fence(e, timer)
	return last(created), err
}

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
	if s, _, ok := e.journal.parse(p.ID); ok && p.State != protocol.Resolved {
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
// of them is settled by now.
func (e *execution) wait(ids ...string) error {
	if err := e.proceed(); err != nil {
		return err
	}
	if p := e.journal.records[e.journal.at(e.position+1)]; p != nil {
		return e.diverge(fmt.Sprintf("after position %d it waits for %q, and the record %s is of %q", e.position, ids[0], p.ID, p.Tags[tagStep]))
	}
	return e.backend.suspend(e, ids...)
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

// version records the version with which the execution reached a place.
func (e *execution) version(change string, least, most int) (int, error) {
	if least > most || change == "" || len(nameVersion+change) > nameMax {
		return 0, e.misuse(fmt.Sprintf("Version(%q, %d, %d) is not valid", change, least, most))
	}
	v, ok := e.versions[change]
	if !ok {
		var err error
		if v, err = e.reach(change, least, most); err != nil {
			return 0, err
		}
		if e.versions == nil {
			e.versions = make(map[string]int)
		}
		e.versions[change] = v
	}
	if v < least || v > most {
		return 0, e.ending(e.diverge(fmt.Sprintf("it supports the versions %d to %d of %q, and it began with version %d", least, most, change, v)))
	}
	return v, nil
}

// reach returns the recorded version. An execution that has another record at this place
// came here before Version was called at all, so it has the oldest version, and the call
// uses no position.
func (e *execution) reach(change string, least, most int) (int, error) {
	if err := e.enter(); err != nil {
		return 0, err
	}
	name := nameVersion + change
	e.position++
	p := e.journal.records[e.journal.at(e.position)]
	var err error
	if p == nil {
		if err = e.proceed(); err == nil {
			p = e.journal.records[e.journal.at(e.position)]
		}
	}
	e.position--
	e.leave()
	if err != nil {
		return 0, e.ending(err)
	}
	if p != nil && p.Tags[tagStep] != name {
		return least, nil
	}
	v := 0
	err = e.internalStep(name, func(context.Context) (any, error) { return most, nil }, &v)
	return v, err
}
