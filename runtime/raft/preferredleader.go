package raft

import (
	"cmp"
	"slices"

	"go.etcd.io/raft/v3"
)

const (
	preferTimeouts    = 2  // election timeouts that a leader stays, before it gives way to the preferred one
	preferTimeoutsMax = 64 // doubled up to here, while the preferred one does not keep the lead
)

// spreading has a group led by the member that it prefers, while that can. Groups that
// share their nodes prefer different ones, so that not all have the same leader.
type leaderPreference struct {
	led  int // ticks that the node has led
	away int // ticks that it has not
	wait int // election timeouts to stay; 0: preferTimeouts
}

// spread counts a tick, and gives way where it is time: to a member that is heard of and
// has all of the log.
func (n *Node) transferToPreferred() {
	s, c := &n.leaderPreference, n.core
	if n.config.Prefer == "" && n.config.Spread == 0 {
		return
	}
	stay := max(s.wait, preferTimeouts) * c.config.ElectionTicks
	if _, leads := c.Leads(); !leads {
		s.led = 0
		if s.away++; s.away > stay {
			s.wait = 0 // others have kept the lead
		}
		return
	}
	s.away = 0
	if s.led++; s.led < stay {
		return
	}
	m, ok := n.preferred()
	if !ok || m.Name == c.config.Name {
		s.led = 0
		return
	}
	p := c.node.Status().Progress[m.ID]
	if p.RecentActive && p.Match == c.memory.last() && c.node.BasicStatus().LeadTransferee == raft.None {
		s.led, s.wait = 0, min(2*max(s.wait, preferTimeouts), preferTimeoutsMax)
		_ = c.TransferLeader(m.ID)
	}
}

// preferred is the member with a vote that is to lead: the one that Prefer names, or the
// one whose turn it is in the order of names, which is the same on each node.
func (n *Node) preferred() (m Member, ok bool) {
	var voters []Member
	for _, m := range n.core.members {
		if !m.Learner && !m.Leaving {
			voters = append(voters, m)
		}
	}
	if n.config.Prefer != "" {
		i := slices.IndexFunc(voters, func(m Member) bool { return m.Name == n.config.Prefer })
		if i < 0 {
			return m, false
		}
		return voters[i], true
	}
	if len(voters) == 0 {
		return m, false
	}
	slices.SortFunc(voters, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return voters[(n.config.Spread-1)%len(voters)], true
}
