package raft

import (
	"bytes"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// A follower that has answered the leader does not vote for another node for one election
// timeout after the leader's message, measured by its own clock. So after a majority has
// answered, no other node can lead during this time. The leader has a lease for half of
// this time, see leaseTime, measured by the leader's clock. During the lease it answers
// reads without a request to the majority. This is correct if no clock runs twice as fast
// as another one. Members should have the same election timeout and heartbeat. Each answer to a
// heartbeat has the lease time that follows from those of its sender, and the leader's lease is
// as short as the shortest of them.
// In three other cases another node could lead earlier. They are excluded: a node does not
// vote in its first election timeout after a start, or because it hears of a higher term,
// and a leader that has told another member to campaign at once has no lease any more.

// lease is the time during which a leader knows that no other node can lead.
type lease struct {
	term uint64        // of the leader when it asked the majority
	end  time.Duration // by Uptime
}

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
	ok = s.RaftState == raft.StateLeader && c.lease.term == s.GetTerm() && c.transferTerm != s.GetTerm() && c.config.Uptime() < c.lease.end
	return s.GetCommit(), ok
}

// leaseTime returns the length of a lease. A follower counts ticks. If it is late for the
// tick before which it answers, this tick follows at once, and the next one when it is due,
// up to a tick later. So electionTicks ticks take more than electionTicks-2 times the time
// of a tick. The lease is half of this, because the follower's clock may be almost twice
// as fast as the leader's.
func leaseTime(electionTicks int, tick time.Duration) time.Duration {
	return time.Duration(max(electionTicks-2, 0)) * tick / 2
}

// unknownLease is the lease time of a member that has not told it: a program of an older version,
// or one whose controller carries the messages. The leader then relies on the same settings.
const unknownLease = time.Duration(-1)

// noteLease records the lease time of a member, as received in its answers to heartbeats.
func (c *Core) noteLease(id uint64, lease time.Duration) {
	before, known := c.leases[id]
	if lease == unknownLease || known && lease == before {
		return
	}
	if c.leases == nil {
		c.leases = map[uint64]time.Duration{}
	}
	c.leases[id] = lease
	if lease != c.config.LeaseTime {
		c.log(slog.LevelWarn, fmt.Sprintf("raft: the election timeout or the heartbeat of %s differs from that of this node: give all members the same. "+
			"Until then leases take %v", c.members[id].Name, c.leaseTime()))
	}
}

// leaseTime returns the length of a lease: the shortest of those of all members.
func (c *Core) leaseTime() time.Duration {
	shortest := c.config.LeaseTime
	for id := range c.members {
		if lease, known := c.leases[id]; known {
			shortest = min(shortest, lease)
		}
	}
	return shortest
}

// extendLease extends the lease after a majority has answered a round of reads.
func (c *Core) extendLease(o *readRound) {
	c.lease = lease{o.term, o.began + c.leaseTime()}
}

// noteLeader records that the node has taken a message of the leader.
func (c *Core) noteLeader(m *pb.Message) {
	switch m.GetType() {
	case pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap:
		if m.GetTerm() == c.node.BasicStatus().GetTerm() { // otherwise the engine has refused the message
			c.leaderTick = c.tick
		}
	}
}

// mayVote reports whether the node may take part in the election of m. It must not vote
// within an election timeout after a message of the leader, or after its start, because it
// may have answered a leader shortly before it was restarted. The engine has this rule
// too, but forgets the leader at a start and when it hears of a higher term.
func (c *Core) mayVote(m *pb.Message) bool {
	if t := m.GetType(); t != pb.MsgVote && t != pb.MsgPreVote {
		return true
	}
	return c.tick-c.leaderTick >= int64(c.config.ElectionTicks) || bytes.Equal(m.Context, campaignTransfer)
}

// campaignTransfer is the context of the messages of an election that the leader has
// started by transferring its leadership.
var campaignTransfer = []byte("CampaignTransfer")
