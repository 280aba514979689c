package raft

import (
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// contact says when a member was heard.
type contact struct {
	tick       int64  // of its last message
	answerTick int64  // of its last answer to a message of this node
	answerTerm uint64 // of that answer; 0: there was none
}

// noteContact records that a message of a member has come.
func (c *Core) noteContact(m *pb.Message) {
	o := c.contacts[m.GetFrom()]
	o.tick = c.tick
	if isAnswer(m) {
		o.answerTick, o.answerTerm = c.tick, m.GetTerm()
	}
	c.contacts[m.GetFrom()] = o
}

// isAnswer reports whether a message answers a message that its receiver has sent in the
// message's term. A member that receives a message of an earlier term confirms index 0.
func isAnswer(m *pb.Message) bool {
	switch m.GetType() {
	case pb.MsgHeartbeatResp, pb.MsgVoteResp:
		return true
	case pb.MsgAppResp:
		return m.GetIndex() > 0
	}
	return false
}

// heardWithin reports whether any message of a member came within a number of election
// timeouts. The member may receive nothing.
func (c *Core) heardWithin(id uint64, timeouts int) bool {
	o, ok := c.contacts[id]
	return id == c.id || ok && c.tick-o.tick <= int64(timeouts*c.config.ElectionTicks)
}

// answers reports whether a member has answered this leader in this term, within the last
// election timeout. So messages go in both directions.
func (c *Core) answers(id uint64) bool {
	b, o := c.node.BasicStatus(), c.contacts[id]
	return id == c.id || b.RaftState == raft.StateLeader && o.answerTerm == b.GetTerm() && c.tick-o.answerTick <= int64(c.config.ElectionTicks)
}
