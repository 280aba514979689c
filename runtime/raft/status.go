package raft

import (
	"cmp"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"go.etcd.io/raft/v3"
)

// Status is what a node knows of itself and its group.
type Status struct {
	Node          string
	ID            uint64
	GroupID       uint64 // identity of the group; 0: the node is not a member of one yet
	Role          string // "leader", "follower", "candidate", "pre-candidate", "learner"; before those "founding" or "joining"; "stopped" when the node has ended
	Leader        string // as far as this node knows; "": none
	Term          uint64
	Commit        uint64        // index up to which a majority has the log
	Applied       uint64        // index up to which the state machine has it
	First         uint64        // index of the oldest entry in memory
	Last          uint64        // index of the newest
	Snapshot      uint64        // index of the last snapshot
	SnapshotError string        `json:",omitempty"` // why there is no newer one, while the log grows
	Pending       int           // proposals of this node that wait for an answer
	Foreign       uint64        // messages of other groups that were refused
	Age           time.Duration // since the node has told this: more than a heartbeat where its disk hangs
	Members       []MemberStatus

	at time.Time // when that was
}

// MemberStatus is a member as a node sees it; Match and Active are known to a
// leader alone.
type MemberStatus struct {
	Member
	Match    uint64    // index up to which it is known to have the log
	Active   bool      // it was heard of lately
	Transfer *Transfer `json:",omitempty"` // the snapshot that a leader sends it; nil: none
}

// Status is the Core's. It allocates.
func (c *Core) Status() Status {
	b := c.node.BasicStatus()
	s := Status{
		Node: c.config.Name, ID: c.id, GroupID: c.groupID, Leader: c.members[b.Lead].Name, Term: b.GetTerm(), Commit: b.GetCommit(),
		Applied: c.applied, First: c.memory.first + 1, Last: c.memory.last(),
		Snapshot: c.SnapshotIndex(),
	}
	s.Pending = c.pendingCount()
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
		m.Address = c.address(m)
		s.Members = append(s.Members, MemberStatus{Member: m, Match: p.Match, Active: p.RecentActive || m.ID == c.id})
	}
	slices.SortFunc(s.Members, func(a, b MemberStatus) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// waiting is how many proposals wait for an answer.
func (c *Core) pendingCount() int {
	c.proposalsMu.Lock()
	defer c.proposalsMu.Unlock()
	return c.pending.len() + len(c.clientUpdates.list)
}

// address is where this node reaches a member: where the group was told to by a change,
// else as the node was told when it started, since addresses change, else as the group
// was told when the member was added.
func (c *Core) address(m Member) string {
	if m.Moved {
		return m.Address
	}
	return cmp.Or(c.config.Peers[m.Name], c.config.Peers[m.Was], m.Address)
}

// Leads is the term, and whether the node takes itself for its leader.
func (c *Core) Leads() (term uint64, leads bool) {
	b := c.node.BasicStatus()
	return b.GetTerm(), b.RaftState == raft.StateLeader
}

// publish lets others see who leads. All other figures are asked for.
func (n *Node) publishStatus() {
	b := n.core.node.BasicStatus()
	old := n.status.Load()
	ended := n.core.err != nil
	if old != nil && old.Term == b.GetTerm() && old.Leader == n.core.members[b.Lead].Name && (old.Role == "leader") == (b.RaftState == raft.StateLeader) &&
		old.GroupID == n.core.groupID && !ended {
		return
	}
	s := n.currentStatus()
	n.status.Store(s)
	if n.config.Led != nil && !ended {
		n.config.Led(fsm.Leadership{Term: s.Term, Leader: s.Leader, ID: b.Lead, Here: s.Role == "leader"})
	}
}

// tell is the status now, on the node's loop. It allocates.
func (n *Node) currentStatus() *Status {
	s := n.core.Status()
	s.Applied, s.Foreign, s.SnapshotError, s.at = n.applier.applied.Load(), n.otherGroupMessages, n.snapshotError, time.Now()
	for i := range s.Members {
		s.Members[i].Transfer = n.snapshotter.transfer(s.Members[i].ID)
	}
	if s.Role != "stopped" {
		s.Role = cmp.Or(n.bootstrapPhase(), s.Role)
	}
	return &s
}
