package durable

import (
	"errors"
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

// deadline is the time after a duration, and at most the deadline of the execution. A timer is
// never early, so the time is rounded up.
func (e *execution) deadline(d time.Duration) int64 {
	now := e.worker.now()
	if d > 0 {
		now = now.Add(d).Add(time.Millisecond - 1) // the sum of the durations may overflow
	}
	return min(now.UnixMilli(), e.promise.TimeoutAt)
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
	p, err := e.open(name, func(id string) (protocol.PromiseCreate, error) { return e.callOf(call, name, id) })
	if err != nil {
		return nil, err
	}
	return p, e.ending(e.sameArgument(p, call))
}

// sameArgument checks that the recorded call has the argument that the function passes now:
// the result of the call belongs to the recorded one. Both are compared as the type of the
// argument reads them, so that a program may add fields and leave them empty.
func (e *execution) sameArgument(p *protocol.Promise, call Call) error {
	now, err := encodeCall(call.Func, call.Arg)
	if err == nil && p.Param.Data != nil && *now.Data == *p.Param.Data {
		return nil
	}
	if err == nil && equalArgument(p.Param, call.Arg) {
		return nil
	}
	return e.diverge(fmt.Sprintf("at position %d it calls %q with an argument that differs from the one in the record %s", e.position, call.Func, p.ID))
}

// callOf is the operation that creates the promise of a child.
func (e *execution) callOf(call Call, name, id string) (protocol.PromiseCreate, error) {
	if len(name) > nameMax {
		return protocol.PromiseCreate{}, e.misuse("the name of the function is too long")
	}
	if len(id) > idMax {
		return protocol.PromiseCreate{}, fmt.Errorf("%w: the id of a child must have at most %d bytes, got %d in %.40q…; give the call an id of its own", ErrInvalidID, idMax, len(id), id)
	}
	create, err := callOf(call, id, e.worker.now())
	create.TimeoutAt = min(create.TimeoutAt, e.promise.TimeoutAt)
	for key, value := range e.tags(name, id, "global") {
		create.Tags[key] = value
	}
	return create, err
}

// startBatch is how many calls StartAll hands to the backend together.
const startBatch = 100

// startAll records several calls.
func (e *execution) startAll(calls []Call) ([]*protocol.Promise, error) {
	promises := make([]*protocol.Promise, 0, len(calls))
	for len(calls) > 0 {
		n := min(len(calls), startBatch)
		part, err := e.startSome(calls[:n])
		if err != nil {
			return nil, err
		}
		promises = append(promises, part...)
		calls = calls[n:]
	}
	return promises, nil
}

func (e *execution) startSome(calls []Call) ([]*protocol.Promise, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	promises := make([]*protocol.Promise, len(calls))
	var ops []protocol.Operation
	var missing []int
	for i, call := range calls {
		call = e.worker.defaults(call)
		if call.ID != "" {
			return nil, e.misuse("StartAll is called for a call with an id of its own: use Start")
		}
		name := nameCall + call.Func
		p, s, err := e.next(name)
		if err != nil {
			return nil, e.ending(err)
		}
		if promises[i] = p; p != nil {
			if err := e.sameArgument(p, call); err != nil {
				return nil, e.ending(err)
			}
			continue
		}
		op, err := e.callOf(call, name, e.journal.id(s))
		if err != nil {
			return nil, err
		}
		ops, missing = append(ops, op), append(missing, i)
	}
	if len(ops) == 0 {
		return promises, nil
	}
	created, err := e.backend.fence(e, ops...)
	if err != nil {
		return nil, e.ending(err)
	}
	for k, i := range missing {
		promises[i] = created[k]
		if err := e.same(created[k], nameCall+calls[i].Func); err != nil {
			return nil, e.ending(err)
		}
		if err := e.sameArgument(created[k], calls[i]); err != nil {
			return nil, e.ending(err)
		}
	}
	return promises, nil
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
	if err != nil || !mayHave(call.ID, id) {
		return nil, e.ending(e.diverge(fmt.Sprintf("at position %d it calls %s with the id %q, and the recorded id is %q", e.position, call.Func, call.ID, id)))
	}
	child, err := e.backend.get(e, id)
	if err == nil {
		err = e.notTaken(isOf(child, call))
	}
	return child, e.ending(err)
}

// createNamed creates the promise of the call before its record: a record says that the
// promise exists.
func (e *execution) createNamed(call Call, name string, s slot) (*protocol.Promise, error) {
	id, err := promiseID(call.ID)
	if err != nil {
		return nil, err
	}
	create, err := e.callOf(call, name, id)
	if err != nil {
		return nil, err
	}
	child, err := e.promiseOf(call, create)
	if err != nil {
		return nil, e.ending(err)
	}
	recorded, err := encode(child.ID)
	if err == nil {
		_, err = e.settle(name, s, e.journal.records[s], protocol.Resolved, recorded)
	}
	return child, e.ending(err)
}

// promiseOf creates the promise of a call with an id of its own, or returns the existing promise.
func (e *execution) promiseOf(call Call, create protocol.PromiseCreate) (*protocol.Promise, error) {
	get := func(id string) (*protocol.Promise, error) { return e.backend.get(e, id) }
	p, err := claim(call, create, get, func(op protocol.PromiseCreate) (*protocol.Promise, error) {
		created, err := e.backend.fence(e, op)
		return last(created), err
	})
	return p, e.notTaken(err)
}

// notTaken makes the execution fail if something else has made the promise of a call with an id of
// its own: the function must not get a result that is not of its call.
func (e *execution) notTaken(err error) error {
	if errors.Is(err, ErrTaken) {
		e.fatal = Final(err)
		return errExit
	}
	return err
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
	if err != nil {
		return nil, err
	}
	return created[0], e.same(created[0], nameSleep)
}
