package plan

import "testing"

func TestTogether(t *testing.T) {
	for want, c := range map[string]Cluster{
		"addresses raft, detector swim, fence majority":                         {Addresses: "raft", Membership: Membership{Detector: "swim"}, Fence: "majority"},
		"addresses raft, detector memberlist, fence off, tie_breaker n1":        {Addresses: "raft", Membership: Membership{Detector: "memberlist"}, Fence: "off", TieBreaker: "n1"},
		"addresses etcd, prefix /topogen/orders, detector swim, fence majority": {Addresses: "etcd", Etcd: &Etcd{Prefix: "/topogen/orders"}, Membership: Membership{Detector: "swim"}, Fence: "majority"},
	} {
		if got := c.Together(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
