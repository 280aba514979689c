package raft

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/raft"
)

// members decides how the members of the group change. It has no clock and sends nothing.
// A leader asks it again and again.
type members struct {
	self   string
	first  map[string]string    // the first nodes: there should be as many voters
	after  time.Duration        // ReplaceAfter
	silent map[uint64]time.Time // members that are gone and silent, since when
	chosen map[uint64]time.Time // learners that were chosen for a vote and do not have it yet, since when
}

// observation is what the leader knows.
type observation struct {
	now     time.Time
	members []raft.MemberStatus
	gone    func(node string) bool // the node will not come back
	left    func(node string) bool // the table says that the node has left
}

// decide returns the next changes, which are made together, or nil. The rules are, in this
// order:
//
//  1. A voter that was gone and silent for ReplaceAfter loses its vote to a learner.
//  2. While there are fewer voters than first nodes, a learner gets a vote.
//  3. Learners that were gone and silent for ReplaceAfter are removed.
//
// A node that has left has said so itself. It is silent twice in a row, and not for ReplaceAfter.
func (m *members) decide(o observation) []raft.Change {
	m.observe(o)
	voters, learner := 0, m.candidate(o)
	var lost string
	var removed []raft.Change
	for _, s := range o.members {
		since, silent := m.silent[s.ID]
		expired := silent && (o.now.Sub(since) >= m.after || o.now.After(since) && o.left(s.Name))
		switch {
		case s.Leaving:
		case !s.Learner:
			voters++
			if expired && lost == "" {
				lost = s.Name
			}
		case expired:
			removed = append(removed, raft.Change{Kind: raft.Remove, Name: s.Name})
		}
	}
	switch {
	case lost != "" && learner != nil:
		return []raft.Change{m.promote(o, learner), {Kind: raft.Remove, Name: lost}}
	case voters < len(m.first) && learner != nil:
		return []raft.Change{m.promote(o, learner)}
	}
	return removed
}

// observe updates since when members are gone and silent.
func (m *members) observe(o observation) {
	silent := map[uint64]time.Time{}
	for _, s := range o.members {
		if s.Active || s.Name == m.self || !o.gone(s.Name) {
			continue
		}
		since, known := m.silent[s.ID]
		if !known {
			since = o.now
		}
		silent[s.ID] = since
	}
	m.silent = silent
}

// candidate returns the learner that should get a vote, or nil: a first node, and then
// others by name. A learner that was chosen for ReplaceAfter and still has no vote, for
// example because it is too slow to get the log, comes after the others.
func (m *members) candidate(o observation) *raft.MemberStatus {
	chosen := map[uint64]time.Time{}
	var list []*raft.MemberStatus
	for i := range o.members {
		s := &o.members[i]
		if !s.Learner || s.Leaving {
			continue
		}
		if since, known := m.chosen[s.ID]; known {
			chosen[s.ID] = since
		}
		if s.Active && !o.gone(s.Name) {
			list = append(list, s)
		}
	}
	m.chosen = chosen
	late := func(s *raft.MemberStatus) bool {
		since, known := m.chosen[s.ID]
		return known && o.now.Sub(since) >= m.after
	}
	rank := func(s *raft.MemberStatus) int {
		if _, first := m.first[s.Name]; first {
			return 0
		}
		return 1
	}
	if len(list) == 0 {
		return nil
	}
	if !slices.ContainsFunc(list, func(s *raft.MemberStatus) bool { return !late(s) }) {
		clear(m.chosen) // all were tried: from the beginning
	}
	return slices.MinFunc(list, func(a, b *raft.MemberStatus) int {
		if late(a) != late(b) {
			if late(b) {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
}

// promote returns the change that gives a learner a vote, and notes that it was chosen.
func (m *members) promote(o observation, s *raft.MemberStatus) raft.Change {
	if _, known := m.chosen[s.ID]; !known {
		m.chosen[s.ID] = o.now
	}
	return raft.Change{Kind: raft.Promote, Name: s.Name}
}

// admission is the decision about a node that wants to become a member.
type admission struct {
	answer  answer
	changes [][]raft.Change // made one after the other
}

// admit decides about a request. plan is the plan of the table; "" if it has none. list are
// the members after the entry with the index applied. gone says which of them have left, or were
// forgotten, and left whether the node that asks has left.
func admit(r incoming, plan string, applied uint64, list []raft.MemberStatus, gone func(node string) bool, left bool) admission {
	a := admission{answer: answer{number: r.number}}
	refuse := func(code answerCode, text string) admission {
		a.answer.code, a.answer.text = code, text
		return a
	}
	if plan != "" && r.plan != plan {
		return refuse(answerPlan, "node "+r.from+" has the plan "+r.plan+", but the cluster has the plan "+plan+"; start the same program on all nodes")
	}
	add := []raft.Change{{Kind: raft.AddLearner, Name: r.from, Address: r.address, ID: r.id}}
	at := slices.IndexFunc(list, func(s raft.MemberStatus) bool { return s.Name == r.from && !s.Leaving })
	switch {
	case at >= 0 && list[at].ID == r.id:
		return a
	case r.known > applied: // this leader has not applied yet that the node is a member
		return a
	case r.known > 0 && left:
		return refuse(answerLeft, "node "+r.from+" has left the cluster")
	case r.known > 0:
		return refuse(answerRemoved, "node "+r.from+" was removed from the cluster")
	case at >= 0 && list[at].Active:
		return refuse(answerWait, "another process with the name "+r.from+" and another folder is running, or has just stopped; each node needs a name and a folder of its own")
	case at >= 0:
		a.changes = append(a.changes, []raft.Change{{Kind: raft.Remove, Name: r.from}})
	}
	former := slices.IndexFunc(list, func(s raft.MemberStatus) bool {
		return s.Name != r.from && s.Address == r.address && r.address != "" && !s.Leaving
	})
	switch full := at < 0 && len(list) >= membersMax; {
	case former >= 0 && !gone(list[former].Name):
		name := list[former].Name
		return refuse(answerWait, "node "+name+" has the address "+r.address+" in the cluster, and has not left it. Give node "+r.from+
			" another address, or stop node "+name+" with SIGTERM. If its process has ended already, remove it with \"topoctl cluster forget "+name+"\"")
	case former < 0 && full: // any member that has left makes room
		former = slices.IndexFunc(list, func(s raft.MemberStatus) bool { return s.Learner && !s.Active && !s.Leaving && gone(s.Name) })
		if former < 0 && !slices.ContainsFunc(list, func(s raft.MemberStatus) bool { return s.Leaving || s.Learner && gone(s.Name) }) {
			return refuse(answerRefused, "the cluster has the largest number of nodes already")
		}
		if former < 0 {
			return refuse(answerWait, "the cluster has the largest number of nodes already, and nodes that have left it are about to end")
		}
	}
	if former >= 0 && list[former].Active {
		return refuse(answerWait, "node "+list[former].Name+" has left the cluster, and its process is about to end")
	}
	if former >= 0 {
		a.changes = append(a.changes, []raft.Change{{Kind: raft.Remove, Name: list[former].Name}})
	}
	a.changes = append(a.changes, add)
	return a
}

// newMembers returns the rules for a configuration.
func newMembers(c *Config) *members {
	return &members{self: c.Node, first: maps.Clone(c.First), after: c.ReplaceAfter}
}
