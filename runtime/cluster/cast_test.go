package cluster

import (
	"testing"

	"github.com/topogen/topogen/runtime/piper/border"
)

// TestWaitingNodeIsLost sends messages for all nodes, to one node at a time. The first node
// gets no second message while another node waits for a place. When the other one cannot be
// reached, it must get the message.
func TestWaitingNodeIsLost(t *testing.T) {
	n := newPhaseNodes(t, "n1", "n2", "n3")
	for _, name := range n.nodes {
		n.start(name)
	}
	n.run()
	core := n.cores["n1"]
	core.config.Neighborhood = 1
	c := &cast{outlet: new(border.Outlet)}
	first, second := c.endOf(core.peers["n2"]), c.endOf(core.peers["n3"])
	transmit := func() {
		for _, e := range c.ends {
			e.pair.peer.transmit(core.now)
		}
	}
	for range 2 {
		k := &castChunk{Chunk: border.Chunk{Data: make([]byte, 1), Messages: 1}, outlet: c.outlet, waiting: 2}
		for _, e := range c.ends {
			e.kept = append(e.kept, castPart{k, 1})
			e.pair.keep(core.now, kept{cast: k, messages: 1})
		}
		transmit()
	}
	if first.pair.handed != 1 || second.pair.handed != 0 {
		t.Fatalf("n2 was sent %d messages and n3 %d, want 1 and 0", first.pair.handed, second.pair.handed)
	}
	second.pair.peer.setReachable(core.now, false)
	transmit()
	if first.pair.handed != 2 {
		t.Errorf("n2 was sent %d messages after n3 is lost, want 2", first.pair.handed)
	}
}
