package raft

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/fsm"
)

// inTopology is a Machine as a processor of a topology. Proposals are handed to
// the node without waiting for it; answers come from the node's goroutine, and
// are sent on in a turn.
type inTopology[S, U, R any] struct {
	m    *Machine[S, U, R]
	host fsm.Host // nil: none

	mu             sync.Mutex
	outcomes       []*controllerProposal[S, U, R] // answered, not sent on yet
	upcoming       []fsm.Upcoming[U]
	sending        []*controllerProposal[S, U, R] // Answer's, used again
	idle           sync.Cond                      // with answering: open has become less
	openCommands   int                            // commands of rast.md 2.15 that were not answered
	answeredGroups int                            // groups of them that were, and Paid was not called for
	spareGroups    []*commandGroup                // used again
	groupErr       error                          // of one of them
}

// ask is a proposal of the controller.
type controllerProposal[S, U, R any] struct {
	t       *inTopology[S, U, R]
	outcome fsm.Outcome[U, R]
	data    []byte
}

// group are the commands of one message of rast.md 2.15, which has no outcome.
type commandGroup struct {
	onAnswered func(*commandGroup)
	list       []proposal
	data       []byte                // of all of them
	unanswered atomic.Int64          // not answered
	err        atomic.Pointer[error] // of the first that failed
}

func (g *commandGroup) proposed(uint64) {}

// Done is called by the node's loop and by its applier.
func (g *commandGroup) Done(r fsm.Applied) {
	if r.Err != nil {
		g.err.CompareAndSwap(nil, &r.Err)
	}
	if g.unanswered.Add(-1) == 0 {
		g.onAnswered(g)
	}
}

func (a *controllerProposal[S, U, R]) proposed(uint64) {}

// Done is called by the node's loop, or by its applier.
func (a *controllerProposal[S, U, R]) Done(r fsm.Applied) {
	t := a.t
	if n := t.m.node; n != nil {
		n.proposalSlots.give()
	}
	a.queueOutcome(r)
}

// ReceiveProposal proposes what the controller asks for.
func (t *inTopology[S, U, R]) ReceiveProposal(ctx context.Context, p *fsm.Proposal[U]) error {
	a := &controllerProposal[S, U, R]{t: t, outcome: fsm.Outcome[U, R]{Proposer: p.Proposer, Update: p.Update}}
	var err error
	if a.data, err = t.m.encode(nil, p.Update); err != nil {
		t.host.Owe()
		a.queueOutcome(fsm.Applied{Err: err})
		return nil
	}
	t.host.Owe()
	if s := t.m.stepped; s != nil {
		r, err := s.command(context.Background(), Update, a.data) // it does not wait
		if s.Err() != nil {
			return err
		}
		r.Err = err
		a.Done(r)
		return nil
	}
	n, err := t.m.running()
	if err != nil {
		return err
	}
	if err := n.acquire(ctx); err != nil {
		return err
	}
	return n.put(func(b *inbox) { b.proposals = append(b.proposals, proposal{Update, a.data, a}) })
}

// answered is Done for one that never reached a node.
func (a *controllerProposal[S, U, R]) queueOutcome(r fsm.Applied) {
	t := a.t
	t.mu.Lock()
	a.outcome.Applied = r
	t.outcomes = append(t.outcomes, a)
	first := len(t.outcomes) == 1
	t.mu.Unlock()
	if first {
		t.host.Wake()
	}
}

// newGroup returns an empty one.
func (t *inTopology[S, U, R]) newGroup() *commandGroup {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.spareGroups)
	if n == 0 {
		return &commandGroup{onAnswered: t.groupAnswered}
	}
	g := t.spareGroups[n-1]
	t.spareGroups = t.spareGroups[:n-1]
	return g
}

// settle takes a group that was answered.
func (t *inTopology[S, U, R]) groupAnswered(g *commandGroup) {
	t.mu.Lock()
	if err := g.err.Swap(nil); err != nil && t.groupErr == nil {
		t.groupErr = *err
	}
	t.openCommands -= len(g.list)
	t.answeredGroups++
	clear(g.list)
	g.list, g.data = g.list[:0], g.data[:0]
	t.spareGroups = append(t.spareGroups, g)
	t.idle.Broadcast()
	t.mu.Unlock()
	t.host.Wake()
}

// propose hands the commands of a group to the node, when there is room.
func (t *inTopology[S, U, R]) propose(ctx context.Context, g *commandGroup) error {
	g.unanswered.Store(int64(len(g.list)))
	t.host.Owe()
	if s := t.m.stepped; s != nil {
		t.openCommands += len(g.list)
		for _, p := range slices.Clone(g.list) { // the last one's answer empties it
			r, err := s.command(context.Background(), p.kind, p.data)
			if s.Err() != nil {
				return err
			}
			r.Err = err
			g.Done(r)
		}
		return nil
	}
	n, err := t.m.running()
	if err != nil {
		return err
	}
	if err := t.awaitRoom(ctx, max(0, int(n.proposalSlots.max)-len(g.list)), len(g.list)); err != nil {
		return err
	}
	return n.put(func(b *inbox) { b.proposals = append(b.proposals, g.list...) })
}

// ReceiveUpdates adds updates: applied, and not yet committed. After an error of a
// codec none is added.
func (t *inTopology[S, U, R]) ReceiveUpdates(ctx context.Context, m *fsm.Updates[U]) (err error) {
	groups := make([]*commandGroup, 0, 1+len(m.Updates)/commandGroupMax)
	for updates := range slices.Chunk(m.Updates, commandGroupMax) {
		g := t.newGroup()
		for i := range updates {
			begin := len(g.data)
			if g.data, err = t.m.encode(g.data, updates[i]); err != nil {
				return err
			}
			g.list = append(g.list, proposal{Add, g.data[begin:len(g.data):len(g.data)], g})
		}
		groups = append(groups, g)
	}
	for _, g := range groups {
		if err := t.propose(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// groupMax is how many commands wait for the others to be answered, at most.
const commandGroupMax = 256

// ReceiveCommit commits all that was added.
func (t *inTopology[S, U, R]) ReceiveCommit(ctx context.Context, _ *fsm.Commit) error {
	return t.proposeOne(ctx, Commit)
}

// ReceiveRevert undoes what was added and not committed.
func (t *inTopology[S, U, R]) ReceiveRevert(ctx context.Context, _ *fsm.Revert) error {
	return t.proposeOne(ctx, Revert)
}

func (t *inTopology[S, U, R]) proposeOne(ctx context.Context, kind Kind) error {
	g := t.newGroup()
	g.list = append(g.list, proposal{kind, nil, g})
	return t.propose(ctx, g)
}

// ReceiveGetUpcoming answers with what was added and not committed. It waits
// until all that came before is applied.
func (t *inTopology[S, U, R]) ReceiveGetUpcoming(ctx context.Context, m *fsm.GetUpcoming) error {
	t.host.Owe()
	if err := t.awaitRoom(ctx, 0, 0); err != nil {
		return err
	}
	u := fsm.Upcoming[U]{Proposer: m.Proposer}
	e, err := t.m.engine()
	if err != nil {
		return err
	}
	e.view(func() { u.Updates = t.m.machine.Upcoming() })
	t.mu.Lock()
	t.upcoming = append(t.upcoming, u)
	t.mu.Unlock()
	t.host.Wake()
	return nil
}

// await waits until no more than so many commands of rast.md 2.15 are under way,
// and counts others to them.
func (t *inTopology[S, U, R]) awaitRoom(ctx context.Context, most, more int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.openCommands > most {
		t.idle.L = &t.mu
		defer context.AfterFunc(ctx, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.idle.Broadcast()
		})()
		for t.openCommands > most {
			if err := ctx.Err(); err != nil {
				return err
			}
			t.idle.Wait()
		}
	}
	t.openCommands += more
	return nil
}

// Answer sends what was answered. It returns the error that has ended the node.
func (t *inTopology[S, U, R]) Answer(to fsm.Answers[U, R]) error {
	more, err := t.m.events.sendPending()
	if err != nil {
		return err
	}
	if more {
		t.host.Wake()
	}
	t.mu.Lock()
	list, upcoming, settled, failed := t.outcomes, t.upcoming, t.answeredGroups, t.groupErr
	t.outcomes, t.upcoming, t.answeredGroups, t.groupErr = t.sending[:0], nil, 0, nil
	t.mu.Unlock()
	for range settled {
		t.host.Paid()
	}
	for _, a := range list {
		r, _ := t.m.result(a.outcome.Applied)
		a.outcome.Value, a.outcome.Applied = r.Value, r.Applied
		to.Outcome(a.outcome)
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
	if s := t.m.stepped; s != nil {
		return s.Err()
	}
	if n := t.m.node; n != nil {
		return n.Err() // nil while it runs
	}
	return nil
}
