package oracle

// handler reads the fields of a request, and returns the function that carries it out if
// the fields have no fault. It returns nil for an unknown kind.
func (s *Server) handler(kind, origin string, f *fields) func() answer {
	switch kind {
	case "promise.get":
		id := f.id("id")
		return func() answer { return s.promiseGet(id) }
	case "promise.create":
		c := readCreation(f, origin)
		return func() answer { return s.promiseCreate(c) }
	case "promise.settle":
		c := readSettlement(f)
		return func() answer { return s.promiseSettle(c) }
	case "promise.register_callback":
		awaited, awaiter := f.id("awaited"), f.id("awaiter")
		if awaited == awaiter {
			f.fail("a promise cannot await itself")
		}
		return func() answer { return s.registerCallback(awaited, awaiter) }
	case "promise.register_listener":
		awaited, address := f.id("awaited"), f.id("address")
		if !deliverable(address) {
			f.fail("%q is not an address", address)
		}
		return func() answer { return s.registerListener(awaited, address) }
	case "promise.search":
		q := readQuery(f, "pending", "resolved", "rejected", "rejected_canceled", "rejected_timedout")
		return func() answer { return s.promiseSearch(q) }
	case "schedule.get":
		id := f.id("id")
		return func() answer { return s.scheduleGet(id) }
	case "schedule.create":
		c := readSchedule(f)
		return func() answer { return s.scheduleCreate(c) }
	case "schedule.delete":
		id := f.id("id")
		return func() answer { return s.scheduleDelete(id) }
	case "schedule.search":
		q := readQuery(f)
		return func() answer { return s.scheduleSearch(q) }
	}
	if run := s.taskHandler(kind, origin, f); run != nil {
		return run
	}
	return s.debugHandler(kind, f)
}

// taskHandler is the handler of the operations on tasks.
func (s *Server) taskHandler(kind, origin string, f *fields) func() answer {
	switch kind {
	case "task.create":
		pid, ttl := f.id("pid"), f.millis("ttl", 1)
		_, _, data := f.action("action", "promise.create")
		c := readCreation(data, origin)
		if _, hasTarget := c.tags["resonate:target"]; !hasTarget {
			f.fail("a promise with a task must have a target")
		}
		if _, hasDelay := c.tags["resonate:delay"]; hasDelay {
			f.fail("a task that is acquired cannot have a delay")
		}
		f.join(data)
		return func() answer { return s.taskCreate(pid, ttl, c) }
	case "task.fence":
		return s.fenceHandler(origin, f)
	case "task.suspend":
		return s.suspendHandler(f)
	case "task.heartbeat":
		return s.heartbeatHandler(f)
	case "task.search":
		q := readQuery(f, "pending", "acquired", "suspended", "halted", "fulfilled")
		return func() answer { return s.taskSearch(q) }
	case "task.get", "task.halt", "task.continue":
		id := f.id("id")
		run := map[string]func(string) answer{"task.get": s.taskGet, "task.halt": s.taskHalt, "task.continue": s.taskContinue}[kind]
		return func() answer { return run(id) }
	}
	id, version := f.id("id"), f.number("version", 0)
	switch kind {
	case "task.acquire":
		pid, ttl := f.id("pid"), f.millis("ttl", 1)
		return func() answer { return s.taskAcquire(id, version, pid, ttl) }
	case "task.release":
		return func() answer { return s.taskRelease(id, version) }
	case "task.fulfill":
		_, _, data := f.action("action", "promise.settle")
		c := readSettlement(data)
		if c.id != id {
			f.fail("a task settles its own promise, not %q", c.id)
		}
		f.join(data)
		return func() answer { return s.taskFulfill(id, version, c) }
	}
	f.fault = ""
	return nil
}

func (s *Server) fenceHandler(origin string, f *fields) func() answer {
	id, version := f.id("id"), f.number("version", 0)
	kind, corrID, data := f.action("action", "promise.create", "promise.settle")
	var target string
	var action func() answer
	if kind == "promise.create" {
		c := readCreation(data, origin)
		target, action = c.id, func() answer { return s.promiseCreate(c) }
	} else {
		c := readSettlement(data)
		target, action = c.id, func() answer { return s.promiseSettle(c) }
	}
	if target == id {
		f.fail("an action on the task's own promise cannot be fenced")
	}
	f.join(data)
	return func() answer { return s.taskFence(id, version, kind, corrID, action) }
}

func (s *Server) suspendHandler(f *fields) func() answer {
	id, version := f.id("id"), f.number("version", 0)
	var awaited []string
	for _, item := range f.list("actions") {
		action := &fields{data: object{"action": item.data}}
		_, _, data := action.action("action", "promise.register_callback")
		a := data.id("awaited")
		if data.id("awaiter") != id {
			f.fail("the awaiter of an action must be the task")
		}
		if a == id {
			f.fail("a task cannot await itself")
		}
		f.join(action)
		f.join(data)
		awaited = append(awaited, a)
	}
	if len(awaited) == 0 {
		f.fail("a suspended task must await a promise")
	}
	return func() answer { return s.taskSuspend(id, version, awaited) }
}

func (s *Server) heartbeatHandler(f *fields) func() answer {
	pid := f.id("pid")
	var references []reference
	for _, item := range f.list("tasks") {
		references = append(references, reference{item.id("id"), item.number("version", 0)})
		f.join(item)
	}
	return func() answer { return s.taskHeartbeat(pid, references) }
}
