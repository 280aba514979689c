package raft

import (
	"context"
	"fmt"
	"sync"

	"github.com/topogen/topogen/runtime/fsm"
)

// inTopology is a Machine as a processor of a topology. Proposals are handed to
// the node without waiting for it; answers come from the node's goroutine, and
// are sent on in a turn.
type inTopology[S, U any, P fsm.Updater[S, U]] struct {
	m    *Machine[S, U, P]
	host fsm.Host // nil: none

	answering sync.Mutex
	outcomes  []*ask[S, U, P] // answered, not sent on yet
	upcoming  []fsm.Upcoming[U]
	sending   []*ask[S, U, P] // Answer's, used again
	idle      sync.Cond       // with answering: open is 0
	open      int             // commands of rast.md 2.15 that were not answered
	failed    error           // of one of them

	batch fsm.Batch // under a Stepper
	index uint64
}

// ask is a proposal of the controller.
type ask[S, U any, P fsm.Updater[S, U]] struct {
	t       *inTopology[S, U, P]
	outcome fsm.Outcome[U]
	data    []byte
	silent  bool // one of rast.md 2.15: it has no outcome
}

func (a *ask[S, U, P]) proposed(uint64) {}

// Done is called on the node's goroutine.
func (a *ask[S, U, P]) Done(r fsm.Applied) {
	t := a.t
	if n := t.m.node; n != nil {
		<-n.slots
	}
	t.answering.Lock()
	a.outcome.Applied = r
	t.outcomes = append(t.outcomes, a)
	if a.silent {
		if t.open--; t.open == 0 {
			t.idle.Broadcast()
		}
		if r.Err != nil && t.failed == nil {
			t.failed = r.Err
		}
	}
	first := len(t.outcomes) == 1
	t.answering.Unlock()
	if first {
		t.host.Wake()
	}
}

// ReceiveProposal proposes what the controller asks for.
func (t *inTopology[S, U, P]) ReceiveProposal(ctx context.Context, p *fsm.Proposal[U]) error {
	a := &ask[S, U, P]{t: t, outcome: fsm.Outcome[U]{Proposer: p.Proposer, Update: p.Update}}
	var err error
	if a.data, err = t.m.encode(nil, &a.outcome.Update); err != nil {
		t.host.Owe()
		a.answered(fsm.Applied{Err: err})
		return nil
	}
	return t.propose(ctx, Update, a)
}

// answered is Done for one that never reached a node.
func (a *ask[S, U, P]) answered(r fsm.Applied) {
	t := a.t
	t.answering.Lock()
	a.outcome.Applied = r
	t.outcomes = append(t.outcomes, a)
	t.answering.Unlock()
	t.host.Wake()
}

// propose hands a to the node, when there is room.
func (t *inTopology[S, U, P]) propose(ctx context.Context, kind Kind, a *ask[S, U, P]) error {
	t.host.Owe()
	if t.host.Stepped() {
		return t.step(kind, a)
	}
	n, err := t.m.running()
	if err != nil {
		return err
	}
	if err := n.acquire(ctx); err != nil {
		return err
	}
	if a.silent {
		t.answering.Lock()
		t.open++
		t.answering.Unlock()
	}
	return n.put(func(b *inbox) { b.proposals = append(b.proposals, proposal{kind, a.data, a}) })
}

// step is what a proposal comes to under a Stepper: it is applied at once.
func (t *inTopology[S, U, P]) step(kind Kind, a *ask[S, U, P]) error {
	const client = 1 << 20 // the session that the first command of the first entry opens
	if t.index == 0 {
		t.index = 1
		t.batch.Reset(0)
		t.batch.Open(1)
		if err := t.m.machine.Apply(t.index, 1, t.batch.Bytes(), func(uint64, uint64, fsm.Applied) {}); err != nil {
			return err
		}
	}
	t.index++
	t.batch.Reset(0)
	switch sequence := t.index; kind {
	case Update:
		t.batch.Update(client, sequence, sequence, a.data)
	case Add:
		t.batch.Add(client, sequence, sequence, a.data)
	case Commit:
		t.batch.Commit(client, sequence, sequence)
	case Revert:
		t.batch.Revert(client, sequence, sequence)
	}
	var result fsm.Applied
	if err := t.m.machine.Apply(t.index, 1, t.batch.Bytes(), func(_, _ uint64, r fsm.Applied) { result = r }); err != nil {
		return err
	}
	a.answered(result)
	return nil
}

// ReceiveUpdates adds updates: applied, and not yet committed.
func (t *inTopology[S, U, P]) ReceiveUpdates(ctx context.Context, m *fsm.Updates[U]) error {
	for i := range m.Updates {
		data, err := t.m.encode(nil, &m.Updates[i])
		if err != nil {
			return err
		}
		if err := t.propose(ctx, Add, &ask[S, U, P]{t: t, data: data, silent: true}); err != nil {
			return err
		}
	}
	return nil
}

// ReceiveCommit commits all that was added.
func (t *inTopology[S, U, P]) ReceiveCommit(ctx context.Context, _ *fsm.Commit) error {
	return t.propose(ctx, Commit, &ask[S, U, P]{t: t, silent: true})
}

// ReceiveRevert undoes what was added and not committed.
func (t *inTopology[S, U, P]) ReceiveRevert(ctx context.Context, _ *fsm.Revert) error {
	return t.propose(ctx, Revert, &ask[S, U, P]{t: t, silent: true})
}

// ReceiveGetUpcoming answers with what was added and not committed. It waits
// until all that came before is applied.
func (t *inTopology[S, U, P]) ReceiveGetUpcoming(ctx context.Context, m *fsm.GetUpcoming) error {
	t.host.Owe()
	if err := t.quiet(ctx); err != nil {
		return err
	}
	u := fsm.Upcoming[U]{Proposer: m.Proposer}
	if n := t.m.node; n != nil {
		n.state.RLock()
		u.Updates = t.m.machine.Upcoming()
		n.state.RUnlock()
	} else {
		u.Updates = t.m.machine.Upcoming()
	}
	t.answering.Lock()
	t.upcoming = append(t.upcoming, u)
	t.answering.Unlock()
	t.host.Wake()
	return nil
}

// quiet waits until no command of rast.md 2.15 is under way.
func (t *inTopology[S, U, P]) quiet(ctx context.Context) error {
	t.answering.Lock()
	defer t.answering.Unlock()
	t.idle.L = &t.answering
	defer context.AfterFunc(ctx, func() {
		t.answering.Lock()
		defer t.answering.Unlock()
		t.idle.Broadcast()
	})()
	for t.open > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.idle.Wait()
	}
	return nil
}

// Answer sends what was answered. It returns the error that has ended the node.
func (t *inTopology[S, U, P]) Answer(to fsm.Answers[U]) error {
	t.answering.Lock()
	list, upcoming, failed := t.outcomes, t.upcoming, t.failed
	t.outcomes, t.upcoming, t.failed = t.sending[:0], nil, nil
	t.answering.Unlock()
	for _, a := range list {
		if !a.silent {
			to.Outcome(a.outcome)
		}
		t.host.Paid()
	}
	clear(list)
	t.sending = list
	for _, u := range upcoming {
		to.Upcoming(u)
		t.host.Paid()
	}
	if failed != nil {
		return fmt.Errorf("raft: an update of the controller: %w", failed)
	}
	if n := t.m.node; n != nil {
		return n.Err() // nil while it runs
	}
	return nil
}
