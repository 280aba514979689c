package raft

import (
	"cmp"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"go.etcd.io/raft/v3"
)

// Status is the state of a node and its group, as far as the node knows.
type Status struct {
	Node          string
	ID            uint64
	GroupID       uint64 // identity of the group; 0: the node is not a member of one yet
	Role          string // "leader", "follower", "candidate", "pre-candidate" or "learner"; before the node has a group "founding" or "joining"; "stopped" when the node has ended
	Leader        string // as far as this node knows; "": no leader is known
	Term          uint64
	Commit        uint64        // index up to which a majority has the log
	Applied       uint64        // index up to which the log is applied to the state machine
	First         uint64        // index of the oldest entry in memory
	Last          uint64        // index of the newest entry
	Snapshot      uint64        // index of the last snapshot
	SnapshotError string        `json:",omitempty"` // why the last snapshot failed, while the log grows
	Pending       int           // proposals of this node that wait for an answer
	Foreign       uint64        // messages of other groups that were refused
	Age           time.Duration // time since the node produced this status: more than a heartbeat if its disk hangs
	Members       []MemberStatus

	at time.Time // when the status was produced
}

// MemberStatus is the state of a member, as far as a node knows. Only a leader knows
// Match and Active.
type MemberStatus struct {
	Member
	Match    uint64    // index up to which the member is known to have the log
	Active   bool      // the member has answered this leader within the last election timeout
	Transfer *Transfer `json:",omitempty"` // the snapshot that the leader sends to the member, or nil
}

// Status returns the status of the Core. It allocates.
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
		s.Members = append(s.Members, MemberStatus{Member: m, Match: p.Match, Active: c.answers(m.ID)})
	}
	slices.SortFunc(s.Members, func(a, b MemberStatus) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// pendingCount returns how many proposals wait for an answer.
func (c *Core) pendingCount() int {
	c.proposalsMu.Lock()
	defer c.proposalsMu.Unlock()
	return c.pending.len() + len(c.clientUpdates.list)
}

// address returns the address where this node reaches a member. An address that a change
// has set has priority. Next is the address in this node's own configuration, because it
// may be newer than the address with which the member was added. That address is the last
// one.
func (c *Core) address(m Member) string {
	if m.Moved {
		return m.Address
	}
	return cmp.Or(c.config.Peers[m.Name], c.config.Peers[m.Was], m.Address)
}

// Leads returns the term, and whether the node is its leader as far as it knows.
func (c *Core) Leads() (term uint64, leads bool) {
	b := c.node.BasicStatus()
	return b.GetTerm(), b.RaftState == raft.StateLeader
}

// publishStatus updates the published status if the leader has changed. Other fields of
// the status are computed when Status is called.
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

// currentStatus returns the status now. Only the node's loop may call it. It allocates.
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
