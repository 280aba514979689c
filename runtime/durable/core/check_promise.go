package core

import (
	"bytes"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

func (c *checker) promiseEntry(key, body []byte) {
	id := string(key)
	p, bad := decodePromise(id, body)
	if bad != "" {
		panic(corrupt(Promises, key, "%s", bad))
	}
	c.check(badID("id", id) == "", "corrupt", id, "the id is not valid")
	c.check(p.flags == flagsOf(p.tags), "corrupt", id, "the flags do not match the tags")
	c.promiseTimes(p)
	if p.flags&targeted != 0 {
		t := c.task(id)
		c.check(t != nil || p.state != pending, "orphan_invokes", id, "has a target but no task")
		c.check(t != nil || p.state == pending, "consistent_task_iff_targeted_promise", id, "has a target but no task")
		c.check(t == nil || p.state == pending || t.state == taskFulfilled, "consistent_settled_promise_has_fulfilled_task", id, "is settled but its task is not fulfilled")
	}
	if p.state == pending && p.flags&external != 0 {
		c.check(c.has(PromiseTimeouts, timeKey(nil, p.timeoutAt, id)), "missing_ptimeout", id, "is pending and external but has no timeout entry")
	}
	if class, ok := p.class(); ok {
		c.check(c.has(PromiseStates, append([]byte{class}, id...)), "promise_state_unindexed", id, "is %s but has no entry for it", stateNames[p.state])
	}
	for k, v := range p.tags {
		if tagIndexed(id, k, v) {
			c.check(c.has(PromiseTags, append(tagPrefix(nil, k, v), id...)), "promise_tag_unindexed", id, "has no entry for its tag %q", k)
		}
	}
}

func (c *checker) promiseTimes(p *promise) {
	created, settled, deadline := p.createdAt, p.settledAt, p.timeoutAt
	c.check(created <= deadline, "well_formed_promise_created_at_lte_timeout_at", p.id, "was created at %d, after its deadline %d", created, deadline)
	c.check(created <= c.now.Wall, "well_formed_promise_created_at_lte_now", p.id, "was created at %d, and it is %d", created, c.now.Wall)
	if p.state == pending {
		c.check(created < deadline, "well_formed_promise_pending_created_before_deadline", p.id, "is pending but was created at its deadline %d", deadline)
		c.check(p.value.Data == nil && len(p.value.Headers) == 0, "well_formed_promise_pending_has_no_value", p.id, "is pending but has a value")
		return
	}
	c.check(settled <= deadline, "well_formed_promise_settled_at_lte_timeout_at", p.id, "was settled at %d, after its deadline %d", settled, deadline)
	c.check(created <= settled, "well_formed_promise_created_at_lte_settled_at", p.id, "was settled at %d, before it was created at %d", settled, created)
	c.check(settled <= c.now.Wall, "well_formed_promise_settled_at_lte_now", p.id, "was settled at %d, and it is %d", settled, c.now.Wall)
	if settled == deadline {
		c.check(p.state == p.outcome(), "well_formed_promise_deadline_verdict_matches_timer_tag", p.id, "is %s after its deadline", stateNames[p.state])
		c.check(p.value.Data == nil && len(p.value.Headers) == 0, "well_formed_promise_deadline_settlement_has_no_value", p.id, "has a value although its deadline passed")
	}
	c.check(p.state != timedout || settled == deadline, "timedout_settled_at_mismatch", p.id, "has timed out at %d, and its deadline is %d", settled, deadline)
}

func (c *checker) promiseTimeout(key, _ []byte) {
	e := c.time(PromiseTimeouts, key)
	p, ok := c.promiseHead(e.id)
	c.check(ok && p.state == pending && p.flags&external != 0 && p.timeoutAt == e.at, "stale_ptimeout", e.id, "has a timeout entry at %d that does not belong to it", e.at)
}

func (c *checker) promiseState(key, _ []byte) {
	id := string(key[1:])
	p, ok := c.promiseHead(id)
	class, indexed := p.class()
	c.check(ok && indexed && class == key[0], "stale_promise_state", id, "has an entry for class %q that does not belong to it", key[0])
}

func (c *checker) promiseTag(key, _ []byte) {
	id := string(key[bytes.LastIndexByte(key, end)+1:])
	p := c.promise(id)
	found := false
	if p != nil {
		for k, v := range p.tags {
			found = found || tagIndexed(id, k, v) && bytes.Equal(key, append(tagPrefix(nil, k, v), id...))
		}
	}
	c.check(found, "stale_promise_tag", id, "has an entry for a tag that it does not have")
}

func (c *checker) callback(key, _ []byte) {
	awaited, awaiter := c.pair(Callbacks, key)
	c.awaiters[awaiter] = true
	p, _ := c.promiseHead(awaited)
	q, ok := c.promiseHead(awaiter)
	c.check(ok && q.flags&targeted != 0, "callback_awaiter_no_target", awaiter, "waits for %s but has no target", quote(awaited))
	c.obligation("callback_for_settled_promise", p, awaited)
	c.check(awaited != awaiter, "well_formed_promise_awaiter_is_not_self", awaited, "waits for itself")
}

func (c *checker) listener(key, _ []byte) {
	id, address := c.pair(Listeners, key)
	p, _ := c.promiseHead(id)
	c.obligation("listener_for_settled_promise", p, id)
	c.check(badAddress("", address) == "", "consistent_listener_addresses_deliverable", id, "has the listener %s", quote(protocol.Redacted(address)))
}

// obligation checks the promise of a callback or listener.
func (c *checker) obligation(invariant string, p promiseHead, id string) {
	// the head of a promise that does not exist has no deadline
	c.check(p.state == pending && p.timeoutAt > 0, invariant, id, "has an entry although it is not pending")
	c.check(p.flags&external != 0, "well_formed_promise_obligations_require_external", id, "can be awaited although it has no timeout entry")
}

func (c *checker) pair(t Table, key []byte) (a, b string) {
	x, y, ok := bytes.Cut(key, []byte{end})
	if !ok {
		panic(corrupt(t, key, "the key has no separator"))
	}
	return string(x), string(y)
}
