package raft

import (
	"cmp"
	"slices"

	"go.etcd.io/raft/v3"
)

const (
	preferTimeouts    = 2  // election timeouts for which another node leads before it transfers the leadership
	preferTimeoutsMax = 64 // limit of this time, which doubles while the preferred member does not keep the leadership
)

// leaderPreference makes a preferred member the leader while that is possible. Groups on
// the same nodes prefer different members, so that they do not all have the same leader.
type leaderPreference struct {
	led  int // ticks since the node became the leader
	away int // ticks since the node was the leader
	wait int // election timeouts to stay the leader; 0: preferTimeouts
}

// transferToPreferred counts a tick. If the node has led long enough, and the preferred
// member is active and has the whole log, it transfers the leadership to that member.
func (n *Node) transferToPreferred() {
	s, c := &n.leaderPreference, n.core
	if n.config.Prefer == "" && n.config.Spread == 0 {
		return
	}
	stay := max(s.wait, preferTimeouts) * c.config.ElectionTicks
	if _, leads := c.Leads(); !leads {
		s.led = 0
		if s.away++; s.away > stay {
			s.wait = 0 // other members have kept the leadership
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

// preferred returns the voter that should lead: the member that Prefer names, or the
// member at the position Spread in the order of names, which is the same on each node.
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
