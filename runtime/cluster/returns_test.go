package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/piper/border"
)

// elsewhereDesign is a topology of three nodes. An external processor on each of them calls
// an instance on n3.
func elsewhereDesign() *design {
	d := &design{nodes: 3, messages: 20, batch: 4, load: 100, parts: []designPart{
		{name: "p0", external: true, placement: EveryNode},
		{name: "p1", instances: 1, placement: OnNode, node: "n3", with: 1},
	}, edges: []designEdge{{from: 0, to: 1, capacity: 16, reply: true}, {from: 0, to: 1, capacity: 2}}}
	d.groups = d.components()
	return d
}

// TestInstanceOnAnotherNode lets n1 believe that the instance is on n2, which returns the
// messages. When n1 learns the truth, n3 gets all of them, in order.
func TestInstanceOnAnotherNode(t *testing.T) {
	for _, told := range []bool{true, false} {
		s := simulate(1, elsewhereDesign())
		wrong := map[[2]int]string{{1, 0}: "n2"}
		s.wrong = func(n *simNode) map[[2]int]string {
			if n.index == 0 {
				return wrong
			}
			return nil
		}
		s.at(4*time.Second, "n1 learns where p1/0 is", func() {
			if e := s.ledger.edges[0][0]; e.handled > 0 || e.sent == 0 {
				t.Errorf("n3 has handled %d of %d messages, which n1 sends to n2", e.handled, e.sent)
			}
			if n := len(s.nodes[1].core.peers["n1"].returned); n != 1 {
				t.Errorf("n2 has returned %d pairs, want 1", n)
			}
			if delete(wrong, [2]int{1, 0}); told {
				s.nodes[0].post(func(h *happened) { h.members = true })
			}
		})
		s.at(7*time.Second, "check", func() {
			if e := s.ledger.edges[0][0]; e.handled == 0 {
				t.Errorf("told %v: n3 has handled nothing 3 seconds after n1 has learned where its instance is", told)
			}
		})
		s.run()
		if f := s.failure(); f != "" {
			t.Error(f)
		}
	}
}

// TestMessagesFollowTheTable lets n1 believe that the instance is on n2, which never answers. When
// the address table of n1 changes, n3 gets all messages that have waited.
func TestMessagesFollowTheTable(t *testing.T) {
	s := simulate(1, elsewhereDesign())
	s.config.Retry.Timeout = time.Minute
	wrong := map[[2]int]string{{1, 0}: "n2"}
	s.wrong = func(n *simNode) map[[2]int]string {
		if n.index == 0 {
			return wrong
		}
		return nil
	}
	s.partition(1<<1, true)
	s.at(5*time.Second, "n1 learns where p1/0 is", func() {
		if e := s.ledger.edges[0][0]; e.handled > 0 || e.sent == 0 {
			t.Errorf("n3 has handled %d of %d messages, which n1 keeps for n2", e.handled, e.sent)
		}
		delete(wrong, [2]int{1, 0})
		s.nodes[0].post(func(h *happened) { h.members = true })
	})
	s.at(8*time.Second, "check", func() {
		if e := s.ledger.edges[0][0]; e.handled == 0 {
			t.Error("n3 has handled nothing 3 seconds after n1 has learned where its instance is")
		}
	})
	s.at(10*time.Second, "n2 can be reached", func() { s.partition(1<<1, false) })
	s.run()
	if f := s.failure(); f != "" {
		t.Error(f)
	}
	for i, f := range s.nodes[0].top.pool.Snapshot().Edges {
		if f.Dropped > 0 {
			t.Errorf("n1 has dropped %d of %d messages of e%d", f.Dropped, f.Sent, i)
		}
	}
}

// TestInstanceOnNoNode lets all nodes believe for ever that the instance is where it is not.
// Messages must not run in circles. They expire, and calls fail.
func TestInstanceOnNoNode(t *testing.T) {
	s := simulate(1, elsewhereDesign())
	s.config.Retry.Timeout = 5 * time.Second
	s.wrong = func(n *simNode) map[[2]int]string {
		return map[[2]int]string{{1, 0}: []string{"n2", "n1", "n2"}[n.index]}
	}
	frames := 0
	s.at(10*time.Second, "count frames", func() { frames = s.counts["frames"] })
	s.at(20*time.Second, "check", func() {
		if n := s.counts["frames"] - frames; n > 200 {
			t.Errorf("the nodes have sent %d frames in 10 seconds", n)
		}
	})
	s.at(time.Minute, "stop", func() {
		for i, a := range s.ledger.asks {
			if a.node.index < 2 && (a.replies != 1 || !errors.Is(a.err, ErrUnreachable)) {
				t.Errorf("call %d of %s has %d replies, and the error %v", i+1, a.node.name, a.replies, a.err)
			}
		}
		for _, n := range s.nodes {
			n.stop()
		}
	})
	s.run()
	if f := s.failure(); f != "" {
		t.Error(f)
	}
	for _, n := range s.nodes[:2] {
		for _, e := range n.top.pool.Snapshot().Edges {
			if e.Dropped != e.Sent || e.Sent == 0 {
				t.Errorf("%s: %d messages of %d were dropped", n.name, e.Dropped, e.Sent)
			}
		}
	}
}

// TestReturnedMessages passes messages for an instance of another node to a node.
func TestReturnedMessages(t *testing.T) {
	core := coreOf(t, func(of, i int) bool { return of != 1 || i != 0 })
	n2, err := core.newPeer("n2")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the sending node may try again
		if err := n2.message(firstLane, appendOpen(nil, border.Pair{From: 0, To: 1})); err != nil {
			t.Error(err)
		}
		if err := n2.message(firstLane, chunkMessage(1, 0, make([]byte, 1))); err != nil {
			t.Error(err)
		}
		if len(n2.returned) != 1 || len(n2.in) != 0 {
			t.Errorf("%d pairs are returned and %d open, want 1 and 0", len(n2.returned), len(n2.in))
		}
	}
}
