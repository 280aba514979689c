package core

import "github.com/topogen/topogen/runtime/durable/protocol"

// The settlement of a promise has three stages: the promise is settled and its listeners
// are consumed, the tasks that wait for it are resumed, and their execute messages are
// sent. It is linear: a resumed task settles nothing as part of this step.

// settle changes the state of a pending promise in the store.
func (s *step) settle(p *promise, to state, value protocol.Value, at int64) {
	s.unmarkState(p)
	if p.flags&external != 0 {
		s.unmarkTime(PromiseTimeouts, p.timeoutAt, p.id)
	}
	p.state, p.value, p.settledAt = to, value, at
	s.putPromise(p)
	s.markState(p)
}

// fulfill ends the task of a promise that was settled.
func (s *step) fulfill(p promiseHead, id string) {
	if p.flags&targeted == 0 {
		return
	}
	t := s.mustTask(id, Promises)
	if t.state == taskFulfilled {
		return
	}
	s.disarm(t)
	s.forgetResumes(t)
	t.enter(taskFulfilled)
	s.putTask(t)
}

// notify sends an unblock message to each listener of a promise that was settled, and
// resumes the tasks that wait for it.
func (s *step) notify(p *promise) {
	if p.flags&external == 0 {
		return // it can have neither listeners nor callbacks
	}
	prefix := pairKey(nil, p.id, "")
	if addresses := s.rests(Listeners, prefix); len(addresses) > 0 {
		record := p.record()
		for _, address := range addresses {
			s.unmarkPair(Listeners, p.id, address)
			s.unblock(record, address)
		}
	}
	for _, awaiter := range s.rests(Callbacks, prefix) {
		s.unmarkPair(Callbacks, p.id, awaiter)
		s.resume(s.mustTask(awaiter, Callbacks), p.id)
	}
}

// resume informs a task that a promise for which it waited is settled. A task whose own
// deadline has passed is skipped: its timeout ends it, and no worker may get it again.
func (s *step) resume(t *task, awaited string) {
	if !t.live(s.now) {
		return
	}
	switch t.state {
	case taskFulfilled:
		return
	case taskSuspended:
		t.enter(taskPending)
		t.due, t.resumed = s.now.Run+s.config.RetryTimeout, true
		s.arm(t)
		s.putTask(t)
		s.execute(t)
	default:
		if !t.resumed {
			t.resumed = true
			s.putTask(t)
		}
	}
	s.markPair(Resumes, t.id, awaited)
}
