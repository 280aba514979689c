package cluster

import (
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestMessagesBeyondTheCapacity lets n1 drop messages after retry.timeout that n2 has
// received and not handled. Then n1 has room for others, so more messages arrive on n2 than
// the capacities allow. The ledger checks that a message counts as handled only after its
// handler call, and that no call to n2 ends without a reply.
func TestMessagesBeyondTheCapacity(t *testing.T) {
	speed.NoRace(t)
	const timeout = time.Second
	for _, policy := range []full{dropOldest, dropNewest} {
		beyond := 0
		for seed := range uint64(30) {
			d := callDesign(3 * time.Second)
			d.messages, d.edges[0].full = 100, fail
			d.edges = append(d.edges, designEdge{from: 0, to: 1, capacity: 1 + int(seed%3), full: policy, reply: seed%2 == 0})
			s := simulate(seed, d)
			s.config.Retry.Timeout, s.turn, s.until = timeout, 300*time.Millisecond, time.Hour
			for i := range 20 {
				at := time.Duration(2*i+1) * 3 * timeout / 2
				s.at(at, "n1 cannot reach n2", func() { s.nodes[0].report(s.nodes[1], false) })
				s.at(at+3*timeout/2, "n1 reaches n2 again", func() { s.nodes[0].report(s.nodes[1], true) })
			}
			s.run()
			if f := s.failure(); f != "" {
				t.Fatalf("%v: %s", policy, f)
			}
			beyond += s.counts["arrived beyond the capacity"]
		}
		if beyond < 100 {
			t.Errorf("%v: %d messages have arrived beyond the capacity, want more", policy, beyond)
		}
	}
}
