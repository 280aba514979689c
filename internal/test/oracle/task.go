package oracle

// task returns a task as it is now, with its promise.
func (s *Server) task(id string) (task, promise, bool) {
	t, exists := s.tasks[id]
	p, _ := s.promise(id)
	if exists && p.State != "pending" {
		t = fulfilled(id, t.Version)
	}
	return t, p, exists
}

// held returns the task if it is acquired at this version. Otherwise it returns the
// refusal.
func (s *Server) held(id string, version int64) (task, *answer) {
	t, _, exists := s.task(id)
	var a answer
	switch {
	case !exists:
		a = refuse(404, "there is no task %q", id)
	case t.State != "acquired":
		a = refuse(409, "the task %q is %s", id, t.State)
	case t.Version != version:
		a = refuse(409, "the task %q has version %d, not %d", id, t.Version, version)
	default:
		return t, nil
	}
	return t, &a
}

func (s *Server) taskGet(id string) answer {
	t, _, exists := s.task(id)
	if !exists {
		return refuse(404, "there is no task %q", id)
	}
	return ok(object{"task": t})
}

// acquire gives a pending task to a process: the only place where a version rises (S6).
func (s *Server) acquire(t task, pid string, ttl int64) {
	t = t.with("acquired")
	lease := s.run + ttl
	t.Version++
	t.Resumes, t.TTL, t.PID, t.lease = []string{}, &ttl, &pid, &lease
	s.tasks[t.ID] = t
}

// acquisition is the response with a task, its promise and the promises of its branch.
func (s *Server) acquisition(id string) answer {
	t, p, _ := s.task(id)
	return ok(object{"task": t, "promise": p, "preload": s.preload(id)})
}

// preload returns the other promises of a branch.
func (s *Server) preload(id string) []promise {
	branch, hasBranch := s.promises[id].Tags["resonate:branch"]
	others := []promise{}
	for _, other := range s.promises {
		if b, has := other.Tags["resonate:branch"]; hasBranch && has && b == branch && other.ID != id {
			others = append(others, other.at(s.wall))
		}
	}
	return others
}

func (s *Server) taskCreate(pid string, ttl int64, c creation) answer {
	if s.config.Strict && timerWithTarget(c.tags) {
		return refuse(400, "a timer must not have a target")
	}
	p, exists := s.promise(c.id)
	if !exists {
		sent := s.sent
		s.create(c, s.wall)
		s.sent = sent // its creator has the task: it is not dispatched
		if t, _, _ := s.task(c.id); t.State == "pending" {
			s.acquire(t, pid, ttl)
		}
		return s.acquisition(c.id)
	}
	if !p.has("resonate:target") {
		return refuse(422, "the promise %q has no target", c.id)
	}
	t, _, _ := s.task(c.id)
	switch t.State {
	case "pending":
		s.acquire(t, pid, ttl)
	case "fulfilled":
	default:
		return refuse(409, "the task %q is %s", c.id, t.State)
	}
	return s.acquisition(c.id)
}

func (s *Server) taskAcquire(id string, version int64, pid string, ttl int64) answer {
	t, _, exists := s.task(id)
	switch {
	case !exists:
		return refuse(404, "there is no task %q", id)
	case t.State != "pending":
		return refuse(409, "the task %q is %s", id, t.State)
	case t.Version != version:
		return refuse(409, "the task %q has version %d, not %d", id, t.Version, version)
	}
	s.acquire(t, pid, ttl)
	return s.acquisition(id)
}

func (s *Server) taskRelease(id string, version int64) answer {
	t, refusal := s.held(id, version)
	if refusal != nil {
		return *refusal
	}
	s.execute(t.with("pending"))
	return ok(object{})
}

func (s *Server) taskFulfill(id string, version int64, c settlement) answer {
	if _, refusal := s.held(id, version); refusal != nil {
		return *refusal
	}
	return ok(object{"promise": s.settle(c)})
}

func (s *Server) taskSuspend(id string, version int64, awaited []string) answer {
	t, refusal := s.held(id, version)
	if refusal != nil {
		return *refusal
	}
	settled := false
	for _, a := range awaited {
		p, exists := s.promise(a)
		if !exists || !p.external() {
			return refuse(422, "the promise %q does not exist or is internal", a)
		}
		settled = settled || p.State != "pending"
	}
	t.Resumes = []string{}
	if settled {
		s.tasks[id] = t
		return answer{300, object{"preload": s.preload(id)}}
	}
	for _, a := range awaited {
		s.addCallback(a, id)
	}
	s.tasks[id] = t.with("suspended")
	return ok(object{})
}

// taskFence carries out an action on another promise if the task is still held.
func (s *Server) taskFence(id string, version int64, kind, corrID string, action func() answer) answer {
	if _, refusal := s.held(id, version); refusal != nil {
		return *refusal
	}
	return ok(object{"action": response(kind, corrID, action()), "preload": []promise{}})
}

// reference names a task at a version.
type reference struct {
	id      string
	version int64
}

func (s *Server) taskHeartbeat(pid string, references []reference) answer {
	for _, r := range references {
		t, refusal := s.held(r.id, r.version)
		if refusal == nil && *t.PID == pid {
			lease := s.run + *t.TTL
			t.lease = &lease
			s.tasks[t.ID] = t
		}
	}
	return ok(object{})
}

func (s *Server) taskHalt(id string) answer {
	t, _, exists := s.task(id)
	switch {
	case !exists:
		return refuse(404, "there is no task %q", id)
	case t.State == "fulfilled":
		return refuse(409, "the task %q is fulfilled", id)
	}
	s.tasks[id] = t.with("halted")
	return ok(object{})
}

func (s *Server) taskContinue(id string) answer {
	t, _, exists := s.task(id)
	switch {
	case !exists:
		return refuse(404, "there is no task %q", id)
	case t.State != "halted":
		return refuse(409, "the task %q is %s", id, t.State)
	}
	s.execute(t.with("pending"))
	return ok(object{})
}
