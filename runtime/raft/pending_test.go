package raft

import (
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
)

// outcomes is a Waiter that stores the outcomes that it receives.
type outcomes []fsm.Applied

func (h *outcomes) Done(a fsm.Applied) { *h = append(*h, a) }

// TestASessionThatEnds: the session of a node ends while the node has proposals. The node opens
// another session. It proposes again the proposals that it has proposed at most once; for the
// others it answers that the outcome is unknown.
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
		t.Errorf("the session must be closed with a new nonce, got session %d, opening %t, nonce %d after %d", p.client, p.opening, p.nonce, before)
	}
	if len(twice) != 1 || twice[0].Err != fsm.ErrStale || len(once)+len(unsent) > 0 {
		t.Errorf("only the first proposal must be answered, got %v, %v, %v", twice, once, unsent)
	}
	if p.batch(&b, 0); b.Len() != 1 {
		t.Errorf("without a session there must be no commands except opening it, got %d", b.Len())
	}
	p.client = 6 << 20
	if p.batch(&b, 0); b.Len() != 2 {
		t.Errorf("the new session must have 2 commands, which were proposed at most once, got %d", b.Len())
	}
}

// TestUpdatesThatTheLogMayNotHave: updates that the check refuses are answered with an error, in the
// session of a node and in sessions of clients. Other updates are proposed.
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
		t.Errorf("%d commands, want the 2 that are not refused", b.Len())
	}
	var f clientUpdates
	f.add(6<<20, 1, 1, []byte("newer"), &newer)
	f.add(6<<20, 2, 1, []byte("older"), &older)
	f.add(7, 0, 0, []byte("newer"), &older) // the name of a client
	if n := f.batch(&b, 0, refuse); n != 3 || b.Len() != 2 {
		t.Errorf("%d commands of %d", b.Len(), n)
	}
	if len(newer) != 3 || newer[0].Err != fsm.ErrNotYet || newer[2].Err != fsm.ErrNotYet || len(older) > 0 {
		t.Errorf("only refused updates must be answered, got %v, %v", newer, older)
	}
}
