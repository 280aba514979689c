package raft

import (
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
)

// outcomes is a Waiter that keeps what it is told.
type outcomes []fsm.Applied

func (h *outcomes) Done(a fsm.Applied) { *h = append(*h, a) }

// TestASessionThatEnds while the node's proposals wait: the node opens another one,
// proposes again what it has proposed once, and says that the outcome of the rest is
// not known.
func TestASessionThatEnds(t *testing.T) {
	p := newPending(8, 1, 77)
	var b fsm.Batch
	var twice, once, unsent outcomes
	p.add(Update, []byte("twice"), &twice)
	p.batch(&b, 0)
	p.markProposed(p.unsent, 1, 0)
	p.client, p.opening = 5<<20, false
	propose := func() { p.markProposed(p.batch(&b, 0), 1, 0) }
	propose()
	p.repropose()
	p.add(Update, []byte("once"), &once)
	propose()
	p.add(Update, []byte("unsent"), &unsent)

	before := p.nonce
	p.reopenSession(fsm.ErrStale)
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

// TestUpdatesThatTheLogMayNotHave end, in a node's session and in those of clients, and
// the others are proposed.
func TestUpdatesThatTheLogMayNotHave(t *testing.T) {
	refuse := func(update []byte) error {
		if string(update) == "newer" {
			return fsm.ErrNotYet
		}
		return nil
	}
	p := newPending(8, 1, 77)
	p.client, p.check = 5<<20, refuse
	var b fsm.Batch
	var newer, older outcomes
	p.add(Update, []byte("newer"), &newer)
	if upTo := p.batch(&b, 0); upTo != 0 || b.Len() != 0 || p.floor != 2 {
		t.Errorf("%d commands up to %d, and the floor is %d", b.Len(), upTo, p.floor)
	}
	p.add(Add, []byte("newer"), &newer)
	p.add(Update, []byte("older"), &older)
	p.add(Commit, nil, &older)
	if p.batch(&b, 0); b.Len() != 2 {
		t.Errorf("%d commands, want those that are not refused", b.Len())
	}
	var f clientUpdates
	f.add(6<<20, 1, 1, []byte("newer"), &newer)
	f.add(6<<20, 2, 1, []byte("older"), &older)
	f.add(7, 0, 0, []byte("newer"), &older) // the name of a client
	if n := f.batch(&b, 0, refuse); n != 3 || b.Len() != 2 {
		t.Errorf("%d commands of %d", b.Len(), n)
	}
	if len(newer) != 3 || newer[0].Err != fsm.ErrNotYet || newer[2].Err != fsm.ErrNotYet || len(older) > 0 {
		t.Errorf("told %v, %v", newer, older)
	}
}
