package core

import "github.com/topogen/topogen/runtime/durable/protocol"

func (c *checker) taskEntry(key, body []byte) {
	id := string(key)
	t, bad := decodeTask(id, body)
	if bad != "" {
		panic(corrupt(Tasks, key, "%s", bad))
	}
	p := c.promise(id)
	c.check(p != nil && p.flags&targeted != 0, "orphan_tasks", id, "is a task without a promise that has a target")
	if p != nil {
		same := t.timeoutAt == p.timeoutAt && t.address == p.tags[protocol.TagTarget]
		c.check(same, "task_differs_from_promise", id, "does not have the deadline and the target of its promise")
		c.check(t.state != taskFulfilled || p.state != pending, "consistent_settled_task_promise_settled", id, "is fulfilled but its promise is pending")
	}
	armed := t.timed() && c.has(t.timeouts(), timeKey(nil, t.due, id))
	switch t.state {
	case taskPending:
		c.check(armed, "pending_task_no_ttimeout", id, "is pending but has no retry at %d", t.due)
	case taskAcquired:
		c.check(armed, "acquired_task_no_lease", id, "is acquired but has no lease until %d", t.due)
		c.check(t.version >= 1, "well_formed_task_acquired_version_positive", id, "is acquired at version %d", t.version)
		c.check(t.pid != "" && t.ttl > 0, "well_formed_task_acquired_iff_has_pid", id, "is acquired by %q for %d ms", t.pid, t.ttl)
	case taskSuspended:
		c.check(c.awaiters[id] || !t.live(c.now), "suspended_no_callback", id, "is suspended but waits for no promise")
	}
	entries := false
	for range c.below(Resumes, pairKey(nil, id, "")) {
		entries = true
		break
	}
	c.check(entries == t.resumed, "task_resumes_mismatch", id, "has settled promises to see: %t, and its record says %t", entries, t.resumed)
}

func (c *checker) taskTimeout(table Table, key []byte) {
	e := c.time(table, key)
	t := c.task(e.id)
	if t != nil && t.timed() && t.due == e.at && t.timeouts() == table {
		return
	}
	invariant, state := "stale_ttimeout", "missing"
	if t != nil {
		state = string(taskStateNames[t.state])
		switch t.state {
		case taskSuspended:
			invariant = "suspended_task_has_ttimeout"
		case taskFulfilled:
			invariant = "fulfilled_task_has_ttimeout"
		}
	}
	c.check(false, invariant, e.id, "is %s and has an entry at %d that does not belong to it", state, e.at)
}

func (c *checker) resumeEntry(key, _ []byte) {
	id, awaited := c.pair(Resumes, key)
	t := c.task(id)
	c.check(t != nil, "orphan_tasks", id, "has settled promises to see but does not exist")
	if t == nil {
		return
	}
	c.check(t.state != taskSuspended, "suspended_with_consumed_callbacks", id, "is suspended although %s is settled", quote(awaited))
	c.check(t.state != taskFulfilled, "well_formed_task_fulfilled_is_cleared", id, "is fulfilled but has settled promises to see")
	p, ok := c.promiseHead(awaited)
	c.check(ok && p.state != pending, "resume_of_pending_promise", id, "was resumed by %s, which is not settled", quote(awaited))
}
