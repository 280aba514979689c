package raft

import (
	"bytes"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// A leader that a majority has answered knows that no other leads until a follower may
// vote for one: for an election timeout, by the follower's clock, after it has heard of
// the leader. For half of that time, by its own clock, a leader answers reads without
// asking again. So no clock may run twice as fast as another. What else lets a follower
// vote is kept from doing so: a node does not vote in its first election timeout, and a
// leader that has asked another to take its place has no lease any more.

// ReadLease is Read for those who rely on clocks: where the node leads and has a lease,
// w is told without a question to the majority.
func (c *Core) ReadLease(w Waiter) error {
	if c.err != nil {
		return c.err
	}
	if index, ok := c.leaseIndex(); ok {
		c.reads.add(w, index)
		return nil
	}
	return c.Read(w)
}

// leased returns the index up to which all may be committed, if the node has a lease.
func (c *Core) leaseIndex() (index uint64, ok bool) {
	s := c.node.BasicStatus()
	ok = s.RaftState == raft.StateLeader && s.GetTerm() == c.term && c.leader == c.id &&
		c.reads.committedTerm == c.term && c.transferTerm != c.term && c.config.Uptime() < c.leaseEnd
	return s.GetCommit(), ok
}

// mayVote reports whether the node takes part in elections yet. Before, it may have
// promised a leader, of whom it has forgotten, not to.
func (c *Core) mayVote(m *pb.Message) bool {
	if t := m.GetType(); t != pb.MsgVote && t != pb.MsgPreVote {
		return true
	}
	return c.tick >= int64(c.config.ElectionTicks) || bytes.Equal(m.Context, campaignTransfer)
}

// campaignTransfer is what the engine puts into the messages of an election that the
// leader has asked for.
var campaignTransfer = []byte("CampaignTransfer")
