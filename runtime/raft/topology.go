package raft

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/fsm"
)

// inTopology is a Machine as a processor of a topology. Proposals are passed to the node
// without waiting. The node's goroutines queue the answers, and a turn of the instance
// sends them.
type inTopology[S, U, R any] struct {
	m    *Machine[S, U, R]
	host fsm.Host // nil: none

	mu             sync.Mutex
	outcomes       []*controllerProposal[S, U, R] // answered and not sent yet
	upcoming       []fsm.Upcoming[U]
	sending        []*controllerProposal[S, U, R] // buffer of Answer, reused
	idle           sync.Cond                      // uses mu; signaled when openCommands decreases
	openCommands   int                            // commands of Updates, Commit and Revert messages that are not answered
	answeredGroups int                            // answered groups for which Paid was not called yet
	spareGroups    []*commandGroup                // groups to reuse
	groupErr       error                          // the first error of a group
}

// controllerProposal is a proposal of the controller.
type controllerProposal[S, U, R any] struct {
	t       *inTopology[S, U, R]
	outcome fsm.Outcome[U, R]
	data    []byte
}

// commandGroup is the commands of one Updates, Commit or Revert message, which has no
// outcome.
type commandGroup struct {
	onAnswered func(*commandGroup)
	list       []proposal
	data       []byte                // of all commands
	unanswered atomic.Int64          // commands that are not answered
	err        atomic.Pointer[error] // of the first command that failed
}

func (g *commandGroup) proposed(uint64) {}

// Done is called by the node's loop or by the applier.
func (g *commandGroup) Done(r fsm.Applied) {
	if r.Err != nil {
		g.err.CompareAndSwap(nil, &r.Err)
	}
	if g.unanswered.Add(-1) == 0 {
		g.onAnswered(g)
	}
}

func (p *controllerProposal[S, U, R]) proposed(uint64) {}

// Done is called by the node's loop or by the applier.
func (p *controllerProposal[S, U, R]) Done(r fsm.Applied) {
	t := p.t
	if n := t.m.node; n != nil {
		n.proposalSlots.give()
	}
	p.queueOutcome(r)
}

// ReceiveProposal proposes an update of the controller.
func (t *inTopology[S, U, R]) ReceiveProposal(ctx context.Context, p *fsm.Proposal[U]) error {
	a := &controllerProposal[S, U, R]{t: t, outcome: fsm.Outcome[U, R]{Proposer: p.Proposer, Update: p.Update}}
	var err error
	if a.data, err = t.m.encode(nil, p.Update); err != nil {
		t.host.BeginReply()
		a.queueOutcome(fsm.Applied{Err: err})
		return nil
	}
	t.host.BeginReply()
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

// queueOutcome queues an outcome. It is called instead of Done for a proposal that was
// not passed to a node.
func (p *controllerProposal[S, U, R]) queueOutcome(r fsm.Applied) {
	t := p.t
	t.mu.Lock()
	p.outcome.Applied = r
	t.outcomes = append(t.outcomes, p)
	first := len(t.outcomes) == 1
	t.mu.Unlock()
	if first {
		t.host.Wake()
	}
}

// newGroup returns an empty group.
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

// groupAnswered handles a group whose commands were all answered.
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

// propose waits until there is room, and passes the commands of a group to the node.
func (t *inTopology[S, U, R]) propose(ctx context.Context, g *commandGroup) error {
	g.unanswered.Store(int64(len(g.list)))
	t.host.BeginReply()
	if s := t.m.stepped; s != nil {
		t.openCommands += len(g.list)
		for _, p := range slices.Clone(g.list) { // a copy, because the answer to the last command empties the list
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

// ReceiveUpdates adds updates, which are applied but not committed. If a codec fails, no
// update is added.
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

// commandGroupMax is the largest number of commands in a group.
const commandGroupMax = 256

// ReceiveCommit commits all updates that were added.
func (t *inTopology[S, U, R]) ReceiveCommit(ctx context.Context, _ *fsm.Commit) error {
	return t.proposeOne(ctx, Commit)
}

// ReceiveRevert undoes the updates that were added and not committed.
func (t *inTopology[S, U, R]) ReceiveRevert(ctx context.Context, _ *fsm.Revert) error {
	return t.proposeOne(ctx, Revert)
}

func (t *inTopology[S, U, R]) proposeOne(ctx context.Context, kind Kind) error {
	g := t.newGroup()
	g.list = append(g.list, proposal{kind, nil, g})
	return t.propose(ctx, g)
}

// ReceiveGetUpcoming answers with the updates that were added and not committed. It waits
// until all earlier commands are applied.
func (t *inTopology[S, U, R]) ReceiveGetUpcoming(ctx context.Context, m *fsm.GetUpcoming) error {
	t.host.BeginReply()
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

// awaitRoom waits until at most limit commands are unanswered, and then adds added to
// their number.
func (t *inTopology[S, U, R]) awaitRoom(ctx context.Context, limit, added int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.openCommands > limit {
		t.idle.L = &t.mu
		defer context.AfterFunc(ctx, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.idle.Broadcast()
		})()
		for t.openCommands > limit {
			if err := ctx.Err(); err != nil {
				return err
			}
			t.idle.Wait()
		}
	}
	t.openCommands += added
	return nil
}

// Answer sends the answers that wait. It returns the error that has ended the node.
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
		t.host.EndReply()
	}
	for _, a := range list {
		r, _ := t.m.result(a.outcome.Applied)
		a.outcome.Value, a.outcome.Applied = r.Value, r.Applied
		to.Outcome(a.outcome)
		t.host.EndReply()
	}
	clear(list)
	t.sending = list
	for _, u := range upcoming {
		to.Upcoming(u)
		t.host.EndReply()
	}
	if failed != nil {
		return fmt.Errorf("raft: an update of the controller: %w", failed)
	}
	if s := t.m.stepped; s != nil {
		return s.Err()
	}
	if n := t.m.node; n != nil {
		return n.Err() // nil while the node runs
	}
	return nil
}
