package core

import "github.com/topogen/topogen/runtime/durable/protocol"

// taskSuspend returns a task until one of the awaited promises is settled. If one is
// settled already, the worker goes on and gets the promises of its branch.
func (s *step) taskSuspend(op protocol.TaskSuspend) protocol.Result {
	t, refusal := s.held(op.ID, op.Version)
	if t == nil {
		return refusal
	}
	settled := false
	for _, a := range op.Actions {
		awaited, ok := s.promiseHead(a.Awaited)
		if !ok {
			return fail(protocol.Unprocessable, "the awaited promise "+quote(a.Awaited)+" does not exist")
		}
		if awaited.flags&external == 0 {
			return notAwaitable(a.Awaited)
		}
		settled = settled || s.projected(awaited).state != pending
	}
	if settled {
		if t.resumed {
			s.forgetResumes(t)
			s.putTask(t)
		}
		p := s.mustPromise(t.id, Tasks)
		return protocol.Result{Status: protocol.Redirect, Preload: s.preload(p.tags, p.id)}
	}
	for _, a := range op.Actions {
		s.markPair(Callbacks, a.Awaited, t.id)
	}
	s.disarm(t)
	s.forgetResumes(t)
	t.enter(taskSuspended)
	s.putTask(t)
	return protocol.Result{Status: protocol.OK}
}

// taskFence carries out an operation of a worker if its lease has not ended.
func (s *step) taskFence(op protocol.TaskFence) protocol.Result {
	t, refusal := s.held(op.ID, op.Version)
	if t == nil {
		return refusal
	}
	var inner protocol.Result
	switch a := op.Action.(type) {
	case protocol.PromiseCreate:
		if refusal := badCreate(&a, s.config.Strict); refusal != "" {
			inner = fail(protocol.BadRequest, refusal)
		} else {
			inner = s.promiseCreate(&a)
		}
	case protocol.PromiseSettle:
		inner = s.promiseSettle(&a)
	}
	return protocol.Result{Status: protocol.OK, Action: &inner, Preload: []protocol.Promise{}}
}
