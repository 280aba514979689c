package cluster

import (
	"testing"
	"time"
)

// TestLostMessageConfirmsNoOther sends messages of which some cannot be decoded, to a slow handler.
// No message may be confirmed before all messages before it were handled: the sending node
// would not send it again to the next process.
func TestLostMessageConfirmsNoOther(t *testing.T) {
	const messages = 60
	for seed := range uint64(10) {
		d := &design{nodes: 2, messages: messages, batch: 4, parts: []designPart{
			{name: "p0", instances: 1, source: true, placement: OnNode, node: "n1", with: 0},
			{name: "p1", instances: 1, placement: OnNode, node: "n2", with: 1, slow: time.Second},
		}, edges: []designEdge{{from: 0, to: 1, capacity: 16}}}
		d.groups = d.components()
		s := simulate(seed, d)
		s.ledger.restarted = true // the test checks the figures by itself
		isLost := func(seq uint64) bool { return seq%4 == 0 || seq%7 == 0 || seq < 3 }
		s.undecodable = func(m *parcel) bool { return isLost(m.seq) }
		handled := 0
		s.onReceived = func(_ int, m *parcel) { // its handler runs
			for _, pair := range s.nodes[0].core.peers["n2"].out {
				if pair.settled >= m.seq {
					t.Errorf("seed %d: %d messages are confirmed before the handler of message %d", seed, pair.settled, m.seq)
				}
			}
			handled++
		}
		s.run()
		if f := s.failure(); f != "" {
			t.Fatal(f)
		}
		n1, n2 := s.nodes[0].top.pool.Snapshot().Edges[0], s.nodes[1].top.pool.Snapshot().Edges[0]
		lost := uint64(0)
		for seq := range n1.Sent {
			if isLost(seq + 1) {
				lost++
			}
		}
		if n1.Sent < messages || handled != int(n1.Sent-lost) || n1.Received != n1.Sent || n1.Len != 0 || n2.Dropped != lost {
			t.Errorf("seed %d: n1 has the figures %+v and n2 %+v, want %d messages dropped on n2 and all confirmed", seed, n1, n2, lost)
		}
	}
}
