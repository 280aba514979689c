package member

import (
	"testing"
	"time"
)

// claimAboutSelf lets n2 send n1 a claim about n1.
func claimAboutSelf(t *testing.T, w *world, r record) *simNode {
	t.Helper()
	n := w.nodes[0]
	payload := appendMessage(nil, &message{kind: kindGossip, boot: w.nodes[1].core.self.boot, records: []record{r}})
	if err := n.core.Step(n.age(), "n2", payload); err != nil {
		t.Fatal(err)
	}
	n.effects()
	return n
}

// TestHighestNumbers: claims with the highest incarnation or boot id do not make a node send
// numbers that others refuse.
func TestHighestNumbers(t *testing.T) {
	for name, change := range map[string]func(*record){
		"incarnation":               func(r *record) { r.status, r.incarnation, r.accusers = statusSuspect, countMax, []uint32{1} },
		"boot id":                   func(r *record) { r.status, r.boot = statusDead, countMax },
		"second to highest boot id": func(r *record) { r.status, r.boot = statusDead, countMax-1 },
	} {
		t.Run(name, func(t *testing.T) {
			w := cluster(t, 1, 3, Config{})
			r := w.nodes[0].core.self.record
			change(&r)
			n := claimAboutSelf(t, w, r)
			w.run(20 * time.Second)
			for _, other := range w.nodes {
				if got := other.core.Stats().Malformed; got > 0 {
					t.Errorf("%s has got %d malformed messages", other.name, got)
				}
			}
			n.core.Leave(n.age())
			if n.core.replaced && !n.core.Left() {
				t.Error("a process that was replaced waits for others when it leaves")
			}
			if state := w.nodes[1].stateOf("n1"); (state == Alive) == n.core.replaced {
				t.Errorf("n2 knows n1 as %v, and n1 was replaced: %v", state, n.core.replaced)
			}
		})
	}
}

// TestOldAckIsNoFarewell: an ack of an earlier ping does not confirm that a node leaves.
func TestOldAckIsNoFarewell(t *testing.T) {
	w := cluster(t, 1, 2, Config{Fence: FenceOff})
	n, other := w.nodes[0], w.nodes[1]
	n.core.Leave(n.age())
	for sequence, want := range map[uint64]bool{0: false, n.core.sequence - 1: false} {
		ack := appendMessage(nil, &message{kind: kindAck, boot: other.core.self.boot, echo: n.core.self.boot, sequence: sequence})
		if err := n.core.Step(n.age(), "n2", ack); err != nil {
			t.Fatal(err)
		}
		if n.core.Left() != want {
			t.Fatalf("an ack with the sequence %d has confirmed the leave %d", sequence, n.core.sequence)
		}
	}
	n.effects()
	w.run(100 * time.Millisecond)
	if !n.core.Left() || other.stateOf("n1") != Left {
		t.Errorf("n1 has left: %v, n2 knows it as %v", n.core.Left(), other.stateOf("n1"))
	}
}
