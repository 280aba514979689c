package raft

import (
	"fmt"
	"log/slog"
	"time"
)

const (
	leaderlessFirst = 10 * time.Second // without a leader, after which that is logged: several elections
	leaderlessNext  = time.Minute      // and again: rarely enough to leave room for the reason
	silentTimeouts  = 2                // election timeouts without a message: who has no leader asks for votes at least so often
)

// leaderless sees how long a node has had no leader. Time is counted in ticks.
type leaderless struct {
	ticks   int64 // since there was one
	logNext int64 // ticks at which that is logged
}

// watch counts a tick, and logs that there is no leader, now and then.
func (n *Node) watchLeader() {
	l := &n.leaderless
	if n.bootstrap != nil { // it has more to say
		l.ticks = 0
		return
	}
	if l.ticks++; n.core.node.BasicStatus().Lead != 0 {
		l.ticks, l.logNext = 0, int64(leaderlessFirst/n.config.Tick)
		return
	}
	if l.logNext == 0 {
		l.logNext = int64(leaderlessFirst / n.config.Tick)
	}
	if l.ticks < l.logNext {
		return
	}
	since := (time.Duration(l.ticks) * n.config.Tick).Round(time.Second)
	l.logNext += int64(leaderlessNext / n.config.Tick)
	n.logger.Warn(fmt.Sprintf("raft: no leader for %v: %s", since, n.reachable()), slog.String("node", n.config.Core.Name))
}

// reachable says how many members are heard of, those with a vote: others are silent
// until there is a leader.
func (n *Node) reachable() string {
	c := n.core
	own, isMember := c.members[c.id]
	if !isMember || own.Leaving || own.Learner {
		return "this node has no vote and waits for the voters"
	}
	voters, near := 0, 0
	for id, m := range c.members {
		if m.Leaving || m.Learner {
			continue
		}
		voters++
		if c.heardWithin(id, silentTimeouts) {
			near++
		}
	}
	return fmt.Sprintf("%d of %d members reachable", near, voters)
}
