package cluster

import (
	"errors"
	"testing"
	"time"
)

// callDesign is a topology of two nodes: an external processor on both of them calls an
// instance on n2.
func callDesign(slow time.Duration) *design {
	d := &design{nodes: 2, messages: 5, batch: 4, parts: []designPart{
		{name: "p0", external: true, placement: EveryNode},
		{name: "p1", instances: 1, placement: OnNode, node: "n2", with: 1, slow: slow},
	}, edges: []designEdge{{from: 0, to: 1, capacity: 16, reply: true}}}
	d.groups = d.components()
	return d
}

// TestCallsToANodeThatNeverReturns stops the process of a node for good, when it has
// received calls and answered none of them. All calls must fail after retry.timeout,
// although nothing else happens on the node that has made them: whether the failure
// detection reports the other node, or has never heard of it.
func TestCallsToANodeThatNeverReturns(t *testing.T) {
	for _, reported := range []bool{true, false} {
		s := simulate(1, callDesign(time.Hour))
		s.config.Retry.Timeout = 5 * time.Second
		s.at(20*time.Second, "n2 never returns", func() { s.nodes[1].frozen = true })
		if reported {
			s.at(23*time.Second, "n1 cannot reach n2", func() { s.nodes[0].report(s.nodes[1], false) })
		}
		s.at(time.Minute, "check", func() {
			asked := 0
			for i, a := range s.ledger.asks {
				if a.node.index != 0 {
					continue
				}
				if asked++; a.replies != 1 || !errors.Is(a.err, ErrUnreachable) {
					t.Errorf("reported %v: after 40 seconds, call %d has %d replies, and the error %v", reported, i+1, a.replies, a.err)
				}
			}
			if asked == 0 {
				t.Errorf("n1 has made no call")
			}
			s.nodes[0].stop()
		})
		s.run()
		if f := s.failure(); f != "" {
			t.Errorf("reported %v: %s", reported, f)
		}
	}
}

// TestSlowHandlerIsReachable calls a handler that takes much longer than retry.timeout on a
// node that the failure detection does not know. The node acknowledges what it gets, so no
// call fails.
func TestSlowHandlerIsReachable(t *testing.T) {
	s := simulate(1, callDesign(time.Minute))
	s.config.Retry.Timeout = 2 * time.Second
	s.run()
	if f := s.failure(); f != "" {
		t.Error(f)
	}
	for i, a := range s.ledger.asks {
		if a.err != nil {
			t.Errorf("call %d: %v", i+1, a.err)
		}
	}
}
