package cluster

import (
	"testing"
	"time"
)

// TestRestartAfterTheEndOfAGroup restarts a node with a source when the receiver of its
// messages has finished, on another node that goes on because a later group has an external sender. The
// new process sends everything again. No handler may be called after Finish, which the
// ledger checks. The messages must be dropped, counted and confirmed, and all nodes must end.
func TestRestartAfterTheEndOfAGroup(t *testing.T) {
	const messages = 20
	d := &design{nodes: 2, messages: messages, batch: 4, hops: 3, parts: []designPart{
		{name: "p0", instances: 1, source: true, placement: OnNode, node: "n2", with: 0},
		{name: "p1", instances: 1, placement: OnNode, node: "n1", with: 1},
		{name: "p2", instances: 1, placement: OnNode, node: "n1", with: 2},
		{name: "p3", external: true, placement: EveryNode},
	}, edges: []designEdge{{from: 0, to: 1, capacity: 8}, {from: 1, to: 2, capacity: 64}, {from: 3, to: 2, capacity: 8}}}
	d.groups = d.components()
	s := simulate(1, d)
	s.config.Retry.Timeout, s.clientsOnly = neverExpires, true
	var before int
	s.at(30*time.Second, "restart n2", func() {
		n1, old := s.nodes[0], s.nodes[1]
		if p := n1.top.place(1, 0).p; !p.finished || n1.state != simRunning || old.state != simRunning {
			t.Fatalf("p1 has finished: %v, n1: %v, n2: %v; want p1 at its end and both nodes running", p.finished, n1.state, old.state)
		}
		before = s.ledger.edges[1][0].sent
		old.state, s.ledger.restarted = simGone, true
		s.nodes[1] = newSimNode(s, 1)
	})
	s.at(time.Minute, "stop", func() {
		for _, n := range s.nodes {
			n.stop()
		}
	})
	s.run()
	for _, f := range s.faults {
		t.Error(f)
	}
	again := uint64(s.ledger.edges[1][0].sent - before)
	if n1 := s.nodes[0].top.pool.Snapshot().Edges[0]; again < messages || n1.Dropped != again || n1.Waiting != 0 {
		t.Errorf("the new process has sent %d messages, and n1 has the figures %+v: want all of them dropped there", again, n1)
	}
	if n2 := s.nodes[1].top.pool.Snapshot().Edges[0]; n2.Len != 0 || n2.Sent != again || n2.Received != again {
		t.Errorf("n2 has the figures %+v, want %d sent and confirmed", n2, again)
	}
	for _, n := range s.nodes {
		if n.result != nil {
			t.Errorf("%s has ended with the error %v", n.name, n.result)
		}
	}
}
