package raft

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/raft/v3"

	"github.com/topogen/topogen/runtime/fsm"
)

// Propose proposes a command in the node's own session. w receives the result. The Core
// owns the bytes of the update until then. The returned number is for Abandon. Propose
// fails without proposing anything if too many commands wait, or if the node is not the
// leader and does not forward proposals.
func (c *Core) Propose(kind Kind, update []byte, w Waiter) (number uint64, err error) {
	c.proposalsMu.Lock()
	defer c.proposalsMu.Unlock()
	switch {
	case c.err != nil:
		return 0, stopped(c.err)
	case c.pending.full():
		return 0, fsm.ErrTooMany
	}
	if err := c.mayPropose(); err != nil {
		return 0, err
	}
	return c.pending.add(kind, update, w), nil
}

// mayPropose returns the reason why a proposal cannot be taken here.
func (c *Core) mayPropose() error {
	if c.config.Forward {
		return nil
	}
	s := c.node.BasicStatus()
	if s.RaftState == raft.StateLeader || s.Lead == raft.None { // without a leader, the proposal waits for one
		return nil
	}
	return &fsm.NotLeader{Leader: c.members[s.Lead].Name}
}

// ProposeAs proposes an update in a session that fsm.Batch.Open has opened, under a
// sequence number chosen by the client. floor is the lowest sequence number whose result
// the client may still ask for.
func (c *Core) ProposeAs(client, sequence, floor uint64, update []byte, w Waiter) error {
	c.proposalsMu.Lock()
	defer c.proposalsMu.Unlock()
	switch {
	case c.err != nil:
		return stopped(c.err)
	case client == c.pending.client && sequence != 0:
		return fsm.ErrSessionExpired // this is the node's own session, which no client has opened
	case len(c.clientUpdates.list) >= c.config.PendingMax:
		return fsm.ErrTooMany
	}
	if err := c.mayPropose(); err != nil {
		return err
	}
	c.clientUpdates.add(client, sequence, floor, update, w)
	return nil
}

// OpenSession opens a session for a client, whose name has 1 to 64 bytes. w receives the
// number of the session. nonce is random and distinguishes this call from all others.
func (c *Core) OpenSession(client string, nonce uint64, w Waiter) error {
	return c.ProposeAs(nonce, 0, 0, []byte(client), w)
}

// Abandon removes the waiter w of a proposal. found reports whether w was there: then its
// Done will not be called. mayApply reports whether the proposal may still be applied.
func (c *Core) Abandon(number uint64, w Waiter) (found, mayApply bool) {
	c.proposalsMu.Lock()
	defer c.proposalsMu.Unlock()
	return c.pending.abandon(number, w)
}

// AbandonAs is Abandon for ProposeAs.
func (c *Core) AbandonAs(client, sequence uint64, w Waiter) (found, mayApply bool) {
	c.proposalsMu.Lock()
	defer c.proposalsMu.Unlock()
	return c.clientUpdates.abandon(client, sequence, w)
}

// Result is the result of a command.
type Result struct {
	Client, Sequence uint64
	fsm.Applied
}

// Results takes results of the state machine, in the order of the log. It reports whether
// the driver has work: the node's session was opened, or must be opened again. Any
// goroutine may call it.
func (c *Core) Results(list []Result) (hasWork bool) {
	c.proposalsMu.Lock()
	defer c.proposalsMu.Unlock()
	before := c.pending.client
	for i := range list {
		c.result(list[i].Client, list[i].Sequence, list[i].Applied)
	}
	return c.pending.client != before || c.forwardLimited || c.pending.refused != nil
}

// result takes one result. The caller holds c.proposalsMu.
func (c *Core) result(client, sequence uint64, a fsm.Applied) {
	p := &c.pending
	switch {
	case sequence == 0 && client == p.nonce:
		switch {
		case a.Err != nil:
			p.refused = a.Err
		case a.Client != 0 && p.client == 0: // otherwise the result answers the node's description of its types
			p.client, p.opening = a.Client, false
		}
	case client != p.client:
		c.clientUpdates.answer(client, sequence, a)
	case !p.isOpen(sequence):
		c.clientUpdates.answer(client, sequence, a)
	case errors.Is(a.Err, fsm.ErrSessionExpired), errors.Is(a.Err, fsm.ErrStale): // ErrStale: a client has used the node's session
		p.reopenSession(a.Err)
	default:
		p.answer(sequence, a)
	}
}

// Read calls w.Done when the state machine holds all updates that were committed when
// Read was called.
func (c *Core) Read(w Waiter) error {
	if c.err != nil {
		return stopped(c.err)
	}
	c.reads.waiting = append(c.reads.waiting, w)
	return nil
}

// AbandonRead removes the waiter w of a read. It reports whether w was there: then its
// Done will not be called.
func (c *Core) AbandonRead(w Waiter) (found bool) { return c.reads.abandon(w) }

// TransferLeader starts the transfer of the leadership to another member. The leader may
// name any voter. Other members may only name themselves. The caller must check later
// which node leads, to find out whether the transfer succeeded.
func (c *Core) TransferLeader(to uint64) (err error) {
	if c.err != nil {
		return stopped(c.err)
	}
	defer c.recoverPanic(&err)
	leads := c.node.BasicStatus().RaftState == raft.StateLeader
	switch m, ok := c.members[to]; {
	case !ok || m.Leaving || m.Learner:
		return fmt.Errorf("%w: %x has no vote", ErrMembers, to)
	case c.leader == raft.None, !leads && to != c.id: // the engine would send the request in the name of the other member
		return &fsm.NotLeader{Leader: c.members[c.leader].Name}
	}
	if !c.answers(to) {
		return &leaderError{"no answer comes from " + c.members[to].Name + "; start it first"}
	}
	c.node.TransferLeader(to)
	return nil
}

// leaderError is an ErrMembers that says why a node cannot be the leader.
type leaderError struct{ why string }

func (e *leaderError) Error() string { return "raft: " + e.why }
func (e *leaderError) Unwrap() error { return ErrMembers }

// noVoteError says why a node without a vote cannot be the leader.
func (m members) noVoteError(name string) error {
	if _, ok := m.named(name); ok {
		return &leaderError{name + " is a learner, which has no vote; promote it first"}
	}
	var names []string
	for _, o := range m.list() {
		if !o.Leaving {
			names = append(names, o.Name)
		}
	}
	return &leaderError{fmt.Sprintf("%s is not a member; the members are %s", name, strings.Join(names, ", "))}
}

// updateLeader checks whether the leader has changed. It retries proposals and reads that
// may have been lost by the change, or because too much time has passed.
func (c *Core) updateLeader() {
	s := c.node.BasicStatus()
	changed := s.GetTerm() != c.term || s.Lead != c.leader
	c.term, c.leader = s.GetTerm(), s.Lead
	if c.leader == raft.None {
		return
	}
	leads := s.RaftState == raft.StateLeader
	timeout := int64(retryTimeouts * c.config.ElectionTicks)
	if changed {
		c.failChanges(fmt.Errorf("%w: the leader has changed", fsm.ErrUnknown))
	}
	c.reproposeLost(changed, leads, timeout)
	c.reads.retry(func(o *readRound) bool {
		return o.term != c.term || !leads && c.tick-o.tick >= timeout
	})
}

// reproposeLost proposes commands again that may be lost, or returns them to their
// callers.
func (c *Core) reproposeLost(changed, leads bool, timeout int64) {
	c.proposalsMu.Lock()
	defer c.proposalsMu.Unlock()
	p := &c.pending
	switch {
	case !leads && !c.config.Forward:
		c.returnProposals(timeout)
	case changed:
		p.repropose()
		c.clientUpdates.repropose()
	case leads: // all commands that it proposed in this term are in its log
	default:
		if p.waitTicks == 0 {
			p.waitTicks = timeout
		}
		if since, waits := p.oldestUnanswered(); waits && c.tick-since >= p.waitTicks {
			p.waitTicks = min(2*p.waitTicks, retryTicksMax)
			p.repropose()
		}
		c.clientUpdates.reproposeOverdue(c.tick, timeout)
	}
}

// returnProposals ends the commands that cannot be proposed because this node is not the
// leader and does not forward: commands that were not sent at once, and sent commands
// after the timeout.
func (c *Core) returnProposals(timeout int64) {
	other := &fsm.NotLeader{Leader: c.members[c.leader].Name}
	var sent error
	if c.tick-max(c.pending.sentTick, c.clientUpdates.sentTick) >= timeout {
		sent = fmt.Errorf("%w: %w", fsm.ErrUnknown, other)
	}
	c.pending.fail(other, sent)
	c.clientUpdates.fail(other, sent)
}

// propose passes the commands and reads that wait to the engine, if there is a leader.
func (c *Core) propose() {
	if c.leader == raft.None || c.err != nil {
		return
	}
	defer c.recoverPanic(new(error))
	c.proposeCommands()
	if len(c.reads.waiting) > 0 {
		key := c.reads.begin(c.config.Nonce, c.term, c.tick, c.config.Uptime())
		c.node.ReadIndex(key)
	}
}

func (c *Core) proposeCommands() {
	c.proposalsMu.Lock()
	defer c.proposalsMu.Unlock()
	if err := c.pending.refused; err != nil {
		c.err = fmt.Errorf("raft: this node's program: %w", err)
		return
	}
	c.proposeNotes()
	for c.forwardLimited = false; !c.forwardLimitReached(); {
		upTo := c.pending.batch(&c.batch, c.now())
		if upTo == 0 || c.proposeBatch() != nil {
			break
		}
		c.pending.markProposed(upTo, c.term, c.tick)
	}
	for len(c.clientUpdates.unsent) > 0 && !c.notes.Describe && !c.forwardLimitReached() {
		n := c.clientUpdates.batch(&c.batch, c.now(), c.pending.check)
		if c.batch.Len() > 0 && c.proposeBatch() != nil {
			break
		}
		c.clientUpdates.markProposed(n, c.tick)
	}
}

// proposeBatch proposes the content of c.batch, which is reused. The engine of a leader
// copies the data; the engine of other members keeps the data until it is sent.
func (c *Core) proposeBatch() error {
	data := c.batch.Bytes()
	if c.node.BasicStatus().RaftState != raft.StateLeader {
		data = slices.Clone(data)
	}
	return c.node.Propose(data)
}
