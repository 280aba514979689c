package oracle

import "strings"

// creation is the data of a promise.create.
type creation struct {
	id        string
	timeoutAt int64
	param     value
	tags      map[string]string
	origin    string
}

func readCreation(f *fields, origin string) creation {
	return creation{f.id("id"), f.millis("timeoutAt", 0), f.value("param"), f.targetTags("tags"), origin}
}

// settlement is the data of a promise.settle.
type settlement struct {
	id, state string
	value     value
}

func readSettlement(f *fields) settlement {
	s := settlement{f.id("id"), f.text("state"), f.value("value")}
	if s.state != "resolved" && s.state != "rejected" && s.state != "rejected_canceled" {
		f.fail("state must be resolved, rejected or rejected_canceled")
	}
	return s
}

// promise returns a promise as it is now.
func (s *Server) promise(id string) (promise, bool) {
	p, exists := s.promises[id]
	return p.at(s.wall), exists
}

func (s *Server) promiseGet(id string) answer {
	p, exists := s.promise(id)
	if !exists {
		return refuse(404, "there is no promise %q", id)
	}
	return ok(object{"promise": p})
}

func (s *Server) promiseCreate(c creation) answer {
	if s.config.Strict && timerWithTarget(c.tags) {
		return refuse(400, "a timer must not have a target")
	}
	if _, exists := s.promises[c.id]; !exists {
		s.create(c, s.wall)
	}
	p, _ := s.promise(c.id)
	return ok(object{"promise": p})
}

func timerWithTarget(tags map[string]string) bool {
	_, target := tags["resonate:target"]
	return target && tags["resonate:timer"] == "true"
}

// create creates a promise, and its task if it has a target.
func (s *Server) create(c creation, createdAt int64) {
	p := promise{ID: c.id, State: "pending", Param: c.param, Tags: c.tags, TimeoutAt: c.timeoutAt, CreatedAt: createdAt, headOrigin: c.origin}
	if c.timeoutAt <= createdAt { // S3
		p.CreatedAt = c.timeoutAt
		p = p.at(c.timeoutAt)
	}
	s.promises[p.ID] = p
	if !p.has("resonate:target") {
		return
	}
	t := task{ID: p.ID, State: "pending", Resumes: []string{}}
	delay := p.delay()
	switch {
	case p.State != "pending":
		s.tasks[p.ID] = fulfilled(p.ID, 0)
	case p.at(s.wall).State != "pending":
		s.tasks[p.ID] = t // of a schedule, which was late: the Tick that created it settles it
	case delay > s.wall:
		t.delay = &delay
		s.tasks[p.ID] = t
	default:
		s.execute(t)
	}
}

func (s *Server) promiseSettle(c settlement) answer {
	p, exists := s.promise(c.id)
	if !exists {
		return refuse(404, "there is no promise %q", c.id)
	}
	if p.State == "pending" {
		p = s.settle(c)
	}
	return ok(object{"promise": p})
}

// settle settles a pending promise by a request, with everything that follows (S4).
func (s *Server) settle(c settlement) promise {
	p := s.promises[c.id]
	settled := s.wall
	p.State, p.Value, p.SettledAt = c.state, c.value, &settled
	s.promises[p.ID] = p
	s.fulfill(p.ID)
	s.propagate(p.ID)
	return s.promises[p.ID]
}

// fulfill marks the task of a settled promise as fulfilled, if it has one.
func (s *Server) fulfill(id string) {
	if t, exists := s.tasks[id]; exists {
		s.tasks[id] = fulfilled(id, t.Version)
	}
}

// propagate resumes the awaiters of a settled promise, and notifies its listeners. Both
// are consumed.
func (s *Server) propagate(id string) {
	p := s.promises[id]
	callbacks, listeners := p.callbacks, p.listeners
	p.callbacks, p.listeners = nil, nil
	s.promises[id] = p
	for _, awaiter := range callbacks {
		s.resume(awaiter, id)
	}
	for _, address := range listeners {
		s.notify(p, address)
	}
}

// resume informs a task that a promise is settled (S5).
func (s *Server) resume(awaiter, awaited string) {
	if p, _ := s.promise(awaiter); p.State != "pending" {
		return // also if its deadline has passed and no Tick has processed it yet
	}
	t := s.tasks[awaiter]
	switch t.State {
	case "suspended":
		t = t.with("pending")
		t.Resumes = []string{awaited}
		s.execute(t)
	case "pending", "acquired", "halted":
		t.Resumes = plus(t.Resumes, awaited)
		s.tasks[awaiter] = t
	}
}

func (s *Server) registerCallback(awaited, awaiter string) answer {
	p, exists := s.promise(awaited)
	a, _ := s.promise(awaiter)
	p.ID, a.ID = awaited, awaiter // the id of a missing promise has an origin, too
	if a.origin() != p.origin() {
		return refuse(400, "%q and %q have different origins", awaited, awaiter)
	}
	if !exists {
		return refuse(404, "there is no promise %q", awaited)
	}
	if !a.has("resonate:target") {
		return refuse(422, "the awaiter %q does not exist or has no target", awaiter)
	}
	if !p.external() {
		return refuse(422, "the promise %q is internal", awaited)
	}
	if p.State == "pending" && a.State == "pending" {
		s.addCallback(awaited, awaiter)
	}
	return ok(object{"promise": p})
}

func (s *Server) addCallback(awaited, awaiter string) {
	p := s.promises[awaited]
	p.callbacks = plus(p.callbacks, awaiter)
	s.promises[awaited] = p
}

func (s *Server) registerListener(awaited, address string) answer {
	p, exists := s.promise(awaited)
	if !exists {
		return refuse(404, "there is no promise %q", awaited)
	}
	if !p.external() {
		return refuse(422, "the promise %q is internal", awaited)
	}
	if p.State == "pending" {
		stored := s.promises[awaited]
		stored.listeners = plus(stored.listeners, address)
		s.promises[awaited] = stored
	}
	return ok(object{"promise": p})
}

// deliverable reports whether a is an address: poll://any@group[/pid],
// poll://uni@group/pid or an URL of HTTP.
func deliverable(a string) bool {
	if rest, found := strings.CutPrefix(a, "poll://any@"); found {
		group, pid, hasPID := strings.Cut(rest, "/")
		return group != "" && (!hasPID || pid != "")
	}
	if rest, found := strings.CutPrefix(a, "poll://uni@"); found {
		group, pid, _ := strings.Cut(rest, "/")
		return group != "" && pid != ""
	}
	for _, scheme := range []string{"http://", "https://"} {
		if rest, found := strings.CutPrefix(a, scheme); found {
			return rest != ""
		}
	}
	return false
}
