package cluster

import "time"

// allDrain reports whether all nodes drain and none of them has left. Then they end
// together, when the groups have finished.
func (c *core) allDrain(now time.Duration) bool {
	if !c.draining {
		return false
	}
	for _, name := range c.participants() {
		if name == c.node {
			continue
		}
		if p := c.peers[name]; p == nil || !p.draining || p.hasLeft(now) {
			return false
		}
	}
	return true
}

// drainingChanged sends what has waited for another draining node.
func (c *core) drainingChanged() {
	for _, p := range c.ordered {
		p.resume()
	}
}

// expire drops messages that have waited too long for a node.
func (c *core) expire(now time.Duration) {
	if now < c.expireAt {
		return
	}
	c.expireAt = now + expireEvery
	c.forgetClients(now)
	for _, p := range c.ordered {
		timeout := p.patience()
		p.changed = true // its dueAt depends on expireAt
		p.listen(now)
		p.waitedFor = false
		if p.takes() || now-p.lostAt < timeout && !p.draining {
			continue
		}
		before := now - timeout
		if c.draining && (p.hasLeft(now) || now-c.drainAt >= timeout) && now-p.lostAt >= timeout {
			p.waitedFor, before = true, now // otherwise this node would wait again for each message that it still sends
		}
		why := p.unreachable()
		for _, pair := range p.out {
			pair.expire(before, why)
		}
	}
	c.expireReturned(now)
}

// mayLeave ends a node that drains while others go on, after it has handled everything
// that it has accepted, and others have handled everything that it has sent. Only the core
// passes on what arrives, so nothing arrives between the last look and the end.
func (c *core) mayLeave(now time.Duration) {
	if !c.draining || c.left || c.ended || c.client && !c.pool.IsClosed() || !c.client && c.allDrain(now) {
		return
	}
	if now < c.lookAt {
		return
	}
	c.lookAt = now + expireEvery // not in each step, because IsIdle looks at all instances
	if c.client {
		c.lookAt = now + closeEvery
		c.giveUp()
	}
	if now-c.drainAt >= c.leaveAfter { // the others would drain by now, too
		c.pool.StopTimers()
	}
	if idle := c.pool.IsIdle(); idle != c.lastIdle {
		c.lastIdle, c.idleAt = idle, now
	}
	if c.lastIdle && (c.client || now-c.idleAt >= c.leaveAfter) { // a client has no messages to expect
		c.left = true
		c.sendAll(laneControl, []byte{controlLeft})
		c.pool.Leave()
	}
}
