package oracle

// debugHandler is the handler of the debug operations. That they are refused without
// --debug, and that debug.start stops the background loops, is not part of the state.
func (s *Server) debugHandler(kind string, f *fields) func() answer {
	switch kind {
	case "debug.start", "debug.stop":
		return func() answer { return ok(object{}) }
	case "debug.reset":
		return func() answer { s.reset(); return ok(object{}) }
	case "debug.snap":
		return func() answer { return ok(s.snapshot()) }
	case "debug.tick":
		time := f.number("time", 0)
		return func() answer {
			s.wall, s.run = time, time
			s.tick()
			return answer{200, []any{}}
		}
	}
	return nil
}

// snapshot returns everything that the server has, as it is stored: without projection.
func (s *Server) snapshot() object {
	lists := map[string][]any{}
	add := func(list string, entry any) { lists[list] = append(lists[list], entry) }
	for _, id := range sorted(s.promises) {
		p := s.promises[id]
		add("promises", p)
		if p.State == "pending" && p.external() {
			add("promiseTimeouts", object{"id": id, "timeout": p.TimeoutAt})
		}
		for _, awaiter := range p.callbacks {
			add("callbacks", object{"awaited": id, "awaiter": awaiter})
		}
		for _, address := range p.listeners {
			add("listeners", object{"id": id, "address": address})
		}
	}
	const retry, lease = 0, 1
	for _, id := range sorted(s.tasks) {
		t := s.tasks[id]
		add("tasks", t)
		for _, timer := range []*int64{t.retry, t.delay} {
			if timer != nil {
				add("taskTimeouts", object{"id": id, "type": retry, "timeout": *timer})
			}
		}
		if t.lease != nil {
			add("taskTimeouts", object{"id": id, "type": lease, "timeout": *t.lease})
		}
	}
	for _, u := range s.outbox {
		message := object{"kind": "unblock", "head": object{}, "data": object{"promise": s.promises[u.promise]}}
		add("messages", object{"address": u.address, "message": message})
	}
	all := object{}
	for _, name := range []string{"promises", "promiseTimeouts", "callbacks", "listeners", "tasks", "taskTimeouts", "messages"} {
		all[name] = append([]any{}, lists[name]...)
	}
	return all
}
