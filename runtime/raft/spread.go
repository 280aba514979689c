package raft

import "go.etcd.io/raft/v3"

const (
	preferTimeouts    = 2  // election timeouts that a leader stays, before it gives way to the preferred one
	preferTimeoutsMax = 64 // doubled up to here, while the preferred one does not keep the lead
)

// spreading has a group led by the member that it prefers, while that can. Groups that
// share their nodes prefer different ones, so that not all have the same leader.
type spreading struct {
	led  int // ticks that the node has led
	wait int // election timeouts to stay; 0: preferTimeouts
}

// spread counts a tick, and gives way where it is time: to a member that is heard of and
// has all of the log.
func (n *Node) spread() {
	s, c := &n.spreading, n.core
	prefer := n.config.Prefer
	if _, leads := c.Leads(); prefer == "" || prefer == c.config.Name || !leads {
		s.led = 0
		return
	}
	if s.led++; s.led < max(s.wait, preferTimeouts)*c.config.ElectionTicks {
		return
	}
	for id, m := range c.members {
		if m.Name != prefer || m.Learner || m.Removed {
			continue
		}
		p := c.node.Status().Progress[id]
		if p.RecentActive && p.Match == c.memory.last() && c.node.BasicStatus().LeadTransferee == raft.None {
			s.led, s.wait = 0, min(2*max(s.wait, preferTimeouts), preferTimeoutsMax)
			_ = c.TransferLeader(id)
		}
	}
}
