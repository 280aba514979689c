package raft

import (
	"fmt"
	"log/slog"
	"time"
)

const (
	leaderlessFirst = 10 * time.Second // time without a leader before a warning: long enough for several elections
	leaderlessNext  = time.Minute      // time between two warnings: long enough to see other messages that give the reason
	silentTimeouts  = 2                // election timeouts without a message: a node without a leader asks for votes at least as often
)

// leaderless measures, in ticks, how long a node has had no leader.
type leaderless struct {
	ticks   int64 // since there was a leader
	logNext int64 // ticks of the next warning
}

// watchLeader counts a tick, and logs a warning if the node has had no leader for some
// time.
func (n *Node) watchLeader() {
	l := &n.leaderless
	if n.bootstrap != nil { // bootstrap logs better messages
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

// reachable says how many voters have sent messages lately. Other members send nothing
// without a leader.
func (n *Node) reachable() string {
	c := n.core
	own, isMember := c.members[c.id]
	if !isMember || own.Leaving || own.Learner {
		return "this node has no vote and waits for the voters"
	}
	voters, heard := 0, 0
	for id, m := range c.members {
		if m.Leaving || m.Learner {
			continue
		}
		voters++
		if c.heardWithin(id, silentTimeouts) {
			heard++
		}
	}
	return fmt.Sprintf("%d of %d members reachable", heard, voters)
}
