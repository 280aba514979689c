package core

import "github.com/topogen/topogen/runtime/durable/protocol"

func (s *step) taskGet(op protocol.TaskGet) protocol.Result {
	t := s.task(op.ID)
	if t == nil {
		return noTask(op.ID)
	}
	return protocol.Result{Status: protocol.OK, Task: s.taskRecord(t)}
}

func noTask(id string) protocol.Result {
	return fail(protocol.NotFound, "task "+quote(id)+" does not exist")
}

// taskRecord is a task as responses show it. A task whose promise has passed its deadline
// is shown as fulfilled.
func (s *step) taskRecord(t *task) *protocol.Task {
	r := &protocol.Task{ID: t.id, State: taskStateNames[t.state], Version: t.version, Resumes: []string{}}
	if !s.live(t) {
		r.State = protocol.TaskFulfilled
		return r
	}
	if t.resumed {
		r.Resumes = s.rests(Resumes, pairKey(nil, t.id, ""))
	}
	if t.state == taskAcquired {
		ttl, pid := t.ttl, t.pid
		r.TTL, r.PID = &ttl, &pid
	}
	return r
}

func taskStateOf(name protocol.TaskState) (taskState, bool) {
	for i, n := range taskStateNames {
		if n == name {
			return taskState(i), true
		}
	}
	return 0, false
}

// held returns the task of an operation that only the holder of its lease may carry out.
func (s *step) held(id string, version int64) (*task, protocol.Result) {
	t := s.task(id)
	switch {
	case t == nil:
		return nil, noTask(id)
	case !s.live(t):
		return nil, conflict(id, "is fulfilled")
	case t.state != taskAcquired:
		return nil, conflict(id, "is "+string(taskStateNames[t.state])+", not acquired")
	case t.version != version:
		return nil, otherVersion(t, version)
	}
	return t, protocol.Result{}
}

func conflict(id, reason string) protocol.Result {
	return fail(protocol.Conflict, "task "+quote(id)+" "+reason)
}

func otherVersion(t *task, version int64) protocol.Result {
	return conflict(t.id, "has version "+itoa(t.version)+", not "+itoa(version))
}

// arm and disarm write and delete the entry of the task's timeout.
func (s *step) arm(t *task) {
	if t.timed() {
		s.markTime(t.timeouts(), t.due, t.id)
	}
}

func (s *step) disarm(t *task) {
	if t.timed() {
		s.unmarkTime(t.timeouts(), t.due, t.id)
	}
}

func (t *task) timeouts() Table {
	if t.delayed {
		return TaskDelays
	}
	return TaskTimeouts
}

// offer makes a task pending and sends its execute message.
func (s *step) offer(t *task) {
	s.disarm(t)
	t.enter(taskPending)
	t.due = s.now.Run + s.config.RetryTimeout
	s.arm(t)
	s.putTask(t)
	s.execute(t)
}

// lease gives a task to a worker. Each lease has its own version, so that a worker whose
// lease has ended can change nothing.
func (s *step) lease(t *task, pid string, ttl int64) {
	s.disarm(t)
	s.forgetResumes(t)
	t.enter(taskAcquired)
	t.due, t.ttl, t.pid = s.now.Run+ttl, ttl, pid
	t.version++
	s.arm(t)
	s.putTask(t)
}

func (s *step) forgetResumes(t *task) {
	if !t.resumed {
		return
	}
	for _, awaited := range s.rests(Resumes, pairKey(nil, t.id, "")) {
		s.unmarkPair(Resumes, t.id, awaited)
	}
	t.resumed = false
}

func (s *step) taskCreate(op *protocol.TaskCreate) protocol.Result {
	p := s.promise(op.Action.ID)
	if p == nil {
		p = s.newPromise(&op.Action, s.now.Wall)
		t := s.newTask(p)
		if p.state == pending {
			s.lease(t, op.PID, op.TTL)
		} else {
			s.putTask(t)
		}
		return s.grant(t, p)
	}
	if p.flags&targeted == 0 {
		return fail(protocol.Unprocessable, "promise "+quote(p.id)+" exists and has no target")
	}
	t := s.mustTask(p.id, Promises)
	if s.live(t) {
		if t.state != taskPending {
			return conflict(t.id, "is "+string(taskStateNames[t.state]))
		}
		s.lease(t, op.PID, op.TTL)
	}
	return s.grant(t, p)
}

// grant answers with a task, its promise and the promises of its branch.
func (s *step) grant(t *task, p *promise) protocol.Result {
	s.project(p)
	return protocol.Result{Status: protocol.OK, Task: s.taskRecord(t), Promise: p.record(), Preload: s.preload(p.tags, p.id)}
}

func (s *step) taskAcquire(op protocol.TaskAcquire) protocol.Result {
	t := s.task(op.ID)
	switch {
	case t == nil:
		return noTask(op.ID)
	case !s.live(t):
		return conflict(op.ID, "is fulfilled")
	case t.state != taskPending:
		return conflict(op.ID, "is "+string(taskStateNames[t.state])+", not pending")
	case t.version != op.Version:
		return otherVersion(t, op.Version)
	}
	s.lease(t, op.PID, op.TTL)
	return s.grant(t, s.mustPromise(t.id, Tasks))
}

func (s *step) taskRelease(op protocol.TaskRelease) protocol.Result {
	t, refusal := s.held(op.ID, op.Version)
	if t == nil {
		return refusal
	}
	s.offer(t)
	return protocol.Result{Status: protocol.OK}
}

func (s *step) taskFulfill(op *protocol.TaskFulfill) protocol.Result {
	t, refusal := s.held(op.ID, op.Version)
	if t == nil {
		return refusal
	}
	p := s.mustPromise(op.ID, Tasks)
	s.complete(p, &op.Action)
	return s.shown(p)
}

func (s *step) taskHeartbeat(op protocol.TaskHeartbeat) protocol.Result {
	var t task
	for _, ref := range op.Tasks {
		if !s.readTask(&t, ref.ID) || !s.live(&t) || t.state != taskAcquired || t.version != ref.Version {
			continue
		}
		due := s.now.Run + t.ttl
		if t.pid != op.PID || t.due == due {
			continue
		}
		s.disarm(&t)
		t.due = due
		s.arm(&t)
		s.putTask(&t)
	}
	return protocol.Result{Status: protocol.OK}
}

func (s *step) taskHalt(op protocol.TaskHalt) protocol.Result {
	t := s.task(op.ID)
	switch {
	case t == nil:
		return noTask(op.ID)
	case t.state == taskFulfilled, !s.live(t):
		return conflict(op.ID, "is fulfilled")
	case t.state == taskHalted:
		return protocol.Result{Status: protocol.OK}
	}
	s.disarm(t)
	t.enter(taskHalted)
	s.putTask(t)
	return protocol.Result{Status: protocol.OK}
}

func (s *step) taskContinue(op protocol.TaskContinue) protocol.Result {
	t := s.task(op.ID)
	switch {
	case t == nil:
		return noTask(op.ID)
	case !s.live(t):
		return conflict(op.ID, "is fulfilled")
	case t.state != taskHalted:
		return conflict(op.ID, "is "+string(taskStateNames[t.state])+", not halted")
	}
	s.offer(t)
	return protocol.Result{Status: protocol.OK}
}
