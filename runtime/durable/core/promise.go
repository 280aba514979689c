package core

import (
	"strconv"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

func (s *step) promiseGet(op protocol.PromiseGet) protocol.Result {
	p := s.promise(op.ID)
	if p == nil {
		return noPromise(op.ID)
	}
	return s.shown(p)
}

// shown answers with a promise that was read from the store.
func (s *step) shown(p *promise) protocol.Result {
	s.project(p)
	return protocol.Result{Status: protocol.OK, Promise: p.record()}
}

func noPromise(id string) protocol.Result {
	return fail(protocol.NotFound, "promise "+quote(id)+" does not exist")
}

// quoted is the length up to which an id is part of an error text.
const quoted = 100

func quote(id string) string {
	if len(id) > quoted {
		return strconv.Quote(id[:quoted]) + "..."
	}
	return strconv.Quote(id)
}

func (s *step) promiseCreate(op *protocol.PromiseCreate) protocol.Result {
	p := s.promise(op.ID)
	if p == nil {
		p, _ = s.create(op, s.now.Wall)
	}
	return s.shown(p)
}

// create stores a new promise, and its task if it has a target. A task that has no delay
// is offered to the workers.
func (s *step) create(op *protocol.PromiseCreate, createdAt int64) (*promise, *task) {
	p := s.newPromise(op, createdAt)
	if p.flags&targeted == 0 {
		return p, nil
	}
	t := s.newTask(p)
	if p.state == pending {
		t.state = taskPending
		s.delay(t, p)
	}
	s.arm(t)
	s.putTask(t)
	if t.state == taskPending && !t.delayed {
		s.execute(t)
	}
	return p, t
}

// delay sets when a new task is offered: at the time that its promise names, or now and
// then again after the retry timeout.
func (s *step) delay(t *task, p *promise) {
	at, err := strconv.ParseInt(p.tags[protocol.TagDelay], 10, 64)
	if err == nil && at > s.now.Wall {
		t.delayed, t.due = true, at
		return
	}
	t.due = s.now.Run + s.config.RetryTimeout
}

// newPromise stores a promise without its task. Beyond its deadline it is settled at once.
func (s *step) newPromise(op *protocol.PromiseCreate, createdAt int64) *promise {
	p := &promise{
		id: op.ID, tags: op.Tags, param: op.Param,
		promiseHead: promiseHead{flags: flagsOf(op.Tags), timeoutAt: op.TimeoutAt, createdAt: min(createdAt, op.TimeoutAt)},
	}
	if _, tagged := op.Tags[protocol.TagOrigin]; !tagged && op.Origin != "" && op.Origin != originOf(op.ID) {
		p.origin = op.Origin
	}
	p.promiseHead = p.projected(s.now)
	s.putPromise(p)
	s.markState(p)
	s.markTags(p)
	if p.state == pending && p.flags&external != 0 {
		s.markTime(PromiseTimeouts, p.timeoutAt, p.id)
	}
	return p
}

// newTask returns the task of a new promise, which is not stored yet.
func (s *step) newTask(p *promise) *task {
	return &task{id: p.id, state: taskFulfilled, timeoutAt: p.timeoutAt, address: p.tags[protocol.TagTarget]}
}

func (s *step) promiseSettle(op *protocol.PromiseSettle) protocol.Result {
	p := s.promise(op.ID)
	if p == nil {
		return noPromise(op.ID)
	}
	if s.projected(p.promiseHead).state != pending {
		return s.shown(p)
	}
	s.complete(p, op)
	return s.shown(p)
}

// complete settles a promise that is pending, as a client asked.
func (s *step) complete(p *promise, op *protocol.PromiseSettle) {
	to, _ := stateOf(op.State)
	s.settle(p, to, op.Value, s.now.Wall)
	s.fulfill(p.promiseHead, p.id)
	s.notify(p)
}

func stateOf(name protocol.PromiseState) (state, bool) {
	for i, n := range stateNames {
		if n == name {
			return state(i), true
		}
	}
	return 0, false
}
