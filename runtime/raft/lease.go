package raft

import (
	"bytes"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// A follower that has answered the leader does not vote for another node for one election
// timeout after the leader's message, measured by its own clock. So after a majority has
// answered, no other node can lead during this time. The leader has a lease for half of
// this time, measured by the leader's clock. During the lease it answers reads without a
// request to the majority. This is correct if no clock runs twice as fast as another one.
// In two other cases another node could lead earlier. They are excluded: a node does not
// vote in its first election timeout after a start, and a leader that has asked another
// member to lead has no lease any more.

// ReadLease is Read for callers that rely on clocks: a leader with a lease answers the
// read without a request to the majority.
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

// leaseIndex returns the index up to which entries may be committed, if the node has a
// lease.
func (c *Core) leaseIndex() (index uint64, ok bool) {
	s := c.node.BasicStatus()
	ok = s.RaftState == raft.StateLeader && s.GetTerm() == c.term && c.leader == c.id &&
		c.reads.committedTerm == c.term && c.transferTerm != c.term && c.config.Uptime() < c.leaseEnd
	return s.GetCommit(), ok
}

// mayVote reports whether the node may take part in the election of m. It must not vote
// in its first election timeout, because it may have answered a leader shortly before it
// was restarted.
func (c *Core) mayVote(m *pb.Message) bool {
	if t := m.GetType(); t != pb.MsgVote && t != pb.MsgPreVote {
		return true
	}
	return c.tick >= int64(c.config.ElectionTicks) || bytes.Equal(m.Context, campaignTransfer)
}

// campaignTransfer is the context of the messages of an election that the leader has
// started by transferring its leadership.
var campaignTransfer = []byte("CampaignTransfer")
