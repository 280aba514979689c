package raft

import (
	"cmp"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
)

// Status is what a node knows of itself and its group.
type Status struct {
	Node     string
	ID       uint64
	Role     string // "leader", "follower", "candidate", "pre-candidate", "learner"; "stopped" when the node has ended
	Leader   string // as far as this node knows; "": none
	Term     uint64
	Commit   uint64        // index up to which a majority has the log
	Applied  uint64        // index up to which the state machine has it
	First    uint64        // index of the oldest entry in memory
	Last     uint64        // index of the newest
	Snapshot uint64        // index of the last snapshot
	Pending  int           // proposals of this node that wait for an answer
	Age      time.Duration // since the node has told this: more than a heartbeat where its disk hangs
	Members  []MemberStatus

	at time.Time // when that was
}

// MemberStatus is a member as a node sees it; Match and Active are known to a
// leader alone.
type MemberStatus struct {
	Member
	Match  uint64 // index up to which it is known to have the log
	Active bool   // it was heard of lately
}

// Status is the Core's. It allocates.
func (c *Core) Status() Status {
	b := c.node.BasicStatus()
	s := Status{
		Node: c.config.Name, ID: c.id, Leader: c.members[b.Lead].Name, Term: b.GetTerm(), Commit: b.GetCommit(),
		Applied: c.applied, First: c.memory.first + 1, Last: c.memory.last(),
		Snapshot: c.SnapshotIndex(),
	}
	s.Pending = c.waiting()
	switch b.RaftState {
	case raft.StateLeader:
		s.Role = "leader"
	case raft.StateCandidate:
		s.Role = "candidate"
	case raft.StatePreCandidate:
		s.Role = "pre-candidate"
	default:
		s.Role = "follower"
		if c.members[c.id].Learner {
			s.Role = "learner"
		}
	}
	if c.err != nil {
		s.Role, s.Leader = "stopped", ""
	}
	progress := c.node.Status().Progress
	for _, m := range c.members {
		p := progress[m.ID]
		if !m.Removed { // the address in force, as in Node.learnPeers
			m.Address = cmp.Or(c.config.Peers[m.Name], m.Address)
		}
		s.Members = append(s.Members, MemberStatus{Member: m, Match: p.Match, Active: p.RecentActive || m.ID == c.id})
	}
	slices.SortFunc(s.Members, func(a, b MemberStatus) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// waiting is how many proposals wait for an answer.
func (c *Core) waiting() int {
	c.proposals.Lock()
	defer c.proposals.Unlock()
	return c.pending.len() + len(c.foreign.list)
}

// Leads is the term, and whether the node takes itself for its leader.
func (c *Core) Leads() (term uint64, leads bool) {
	b := c.node.BasicStatus()
	return b.GetTerm(), b.RaftState == raft.StateLeader
}

// publish lets others see who leads. All other figures are asked for.
func (n *Node) publish() {
	b := n.core.node.BasicStatus()
	old := n.status.Load()
	ended := n.core.err != nil
	if old != nil && old.Term == b.GetTerm() && old.Leader == n.core.members[b.Lead].Name && (old.Role == "leader") == (b.RaftState == raft.StateLeader) && !ended {
		return
	}
	n.status.Store(n.tell())
}

// tell is the status now, on the node's loop.
func (n *Node) tell() *Status {
	s := n.core.Status()
	s.Applied, s.at = n.keeper.applied.Load(), time.Now()
	return &s
}
