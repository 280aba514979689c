package raft

import (
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
)

// heard is a Waiter that keeps what it is told.
type heard []fsm.Applied

func (h *heard) Done(a fsm.Applied) { *h = append(*h, a) }

// TestASessionThatEnds while the node's proposals wait: the node opens another one,
// proposes again what it has proposed once, and says that the outcome of the rest is
// not known.
func TestASessionThatEnds(t *testing.T) {
	p := newPending(8, 1, 77)
	var b fsm.Batch
	var twice, once, unsent heard
	p.add(Update, []byte("twice"), &twice)
	p.batch(&b, 0)
	p.proposed(p.unsent, 1, 0)
	p.client, p.opening = 5<<20, false
	propose := func() { p.proposed(p.batch(&b, 0), 1, 0) }
	propose()
	p.again()
	p.add(Update, []byte("once"), &once)
	propose()
	p.add(Update, []byte("unsent"), &unsent)

	before := p.nonce
	p.expired(fsm.ErrStale)
	if p.client != 0 || p.opening || p.nonce == before {
		t.Errorf("session %d, opening %t, nonce %d after %d", p.client, p.opening, p.nonce, before)
	}
	if len(twice) != 1 || twice[0].Err != fsm.ErrStale || len(once)+len(unsent) > 0 {
		t.Errorf("told %v, %v, %v", twice, once, unsent)
	}
	if p.batch(&b, 0); b.Len() != 1 {
		t.Errorf("%d commands before there is a session", b.Len())
	}
	p.client = 6 << 20
	if p.batch(&b, 0); b.Len() != 2 {
		t.Errorf("%d commands in the other session, want the two that were proposed once or not at all", b.Len())
	}
}
