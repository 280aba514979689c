package raft

import (
	"cmp"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
)

// Effects are the steps of the driver, in the order of the fields.
type Effects struct {
	Early    []Message     // to send at once, because they promise nothing
	Snapshot *pb.Snapshot  // head of a snapshot to save, or nil; its state, which was received before, is installed before Apply
	State    *pb.HardState // to save together with the entries, or nil
	Entries  []*pb.Entry   // to save
	Sync     bool          // State and Entries must be durable before the messages in Late are sent
	Late     []Message     // to send after State and Entries were saved
	Apply    []Committed   // for the state machine, in order
	Reads    []Waiter      // reads that may run after all these entries are applied
	Members  []Member      // all members, if they have changed
}

// Committed is a committed entry.
type Committed struct {
	Index, Term uint64
	Data        []byte      // for the state machine; may be empty
	Membership  *membership // the members from this entry on, if they have changed
}

// membership is the members of a group, in the form that snapshots use.
type membership struct {
	members []Member
	conf    *pb.ConfState
}

// HasEffects reports whether there is work for the driver.
func (c *Core) HasEffects() bool {
	if c.err != nil {
		return false
	}
	c.updateLeader()
	c.propose()
	return c.err == nil && (c.node.HasReady() || c.readable() || len(c.toLeader) > 0)
}

// readable reports whether a read can run now.
func (c *Core) readable() bool {
	for i := range c.reads.rounds {
		if o := &c.reads.rounds[i]; o.index != 0 && o.index <= c.applied {
			return true
		}
	}
	return false
}

// Effects returns the steps to do now. The driver calls Advance after it has done them.
func (c *Core) Effects() Effects {
	e := &c.effects
	*e = Effects{Early: e.Early[:0], Late: e.Late[:0], Apply: e.Apply[:0], Reads: e.Reads[:0]}
	if c.err != nil {
		return *e
	}
	defer c.recoverPanic(new(error))
	c.inEffects = true
	rd := c.node.Ready()
	c.ready = rd
	// If a group has only one voter, the engine answers reads at once, even before it has
	// committed the entries that its log holds from before a crash.
	behind := c.leader == c.id && c.reads.committedTerm != c.term
	for _, m := range rd.Messages {
		if behind && m.GetType() == pb.MsgReadIndexResp {
			m.Index = new(max(m.GetIndex(), c.memory.last()))
		}
		switch m.GetType() {
		case pb.MsgSnap:
			c.snapshots[m.GetTo()] = followerSnapshot{index: m.GetSnapshot().GetMetadata().GetIndex()}
		case pb.MsgTimeoutNow:
			c.transferTerm = m.GetTerm()
		}
		if promises(m) {
			e.Late = append(e.Late, Message{m.GetTo(), m})
		} else {
			e.Early = append(e.Early, Message{m.GetTo(), m})
		}
	}
	if !raft.IsEmptySnap(rd.Snapshot) {
		e.Snapshot = rd.Snapshot
		c.install(rd.Snapshot)
	}
	if !raft.IsEmptyHardState(rd.HardState) {
		e.State = rd.HardState
	}
	e.Entries, e.Sync = rd.Entries, rd.MustSync
	c.checkProposedChange(rd.Entries)
	committed := rd.CommittedEntries
	for _, entry := range committed {
		if entry.GetType() != pb.EntryNormal && entry.GetIndex() > c.syncedCommit {
			// A node that forgets a removal could need the vote of the removed member, whose disk may be
			// lost. The Effects before may have had the commit, if they had too many bytes of other entries.
			e.State, e.Sync = cmp.Or(e.State, c.memory.state), true
		}
		c.commit(entry)
	}
	if e.Sync && e.State != nil {
		c.syncedCommit = e.State.GetCommit()
	}
	for _, r := range rd.ReadStates {
		if behind {
			r.Index = max(r.Index, c.memory.last())
		}
		if o := c.reads.setIndex(c.config.Nonce, r.RequestCtx, r.Index); o != nil && c.leader == c.id {
			c.extendLease(o)
		}
	}
	e.Early = append(e.Early, c.toLeader...)
	c.toLeader = c.toLeader[:0]
	e.Reads = c.reads.ready(c.applied, e.Reads)
	return *e
}

// commit takes a committed entry. The Core itself applies the changes of the members.
func (c *Core) commit(entry *pb.Entry) {
	c.applied, c.reads.committedTerm = entry.GetIndex(), entry.GetTerm()
	o := Committed{Index: entry.GetIndex(), Term: entry.GetTerm()}
	if entry.GetType() == pb.EntryNormal {
		o.Data = entry.Data
	} else {
		c.applyChange(entry)
		o.Membership = &membership{c.members.list(), c.conf}
	}
	c.effects.Apply = append(c.effects.Apply, o)
}

// install takes a snapshot of the leader.
func (c *Core) install(s *pb.Snapshot) {
	h, _, err := readSnapshot(s.GetData()) // checked when it was received
	if err != nil {
		c.err = err
		return
	}
	c.conf = s.GetMetadata().GetConfState()
	c.members = members{}
	c.members.apply(h.members, c.conf)
	c.applied = s.GetMetadata().GetIndex()
	c.effects.Members = c.members.list()
	c.checkRemoved()
	c.proposalsMu.Lock()
	defer c.proposalsMu.Unlock()
	c.pending.repropose() // the snapshot may cover proposals of this node; their sessions have the results
	c.clientUpdates.repropose()
}

// Advance continues the Core after the driver has carried out the Effects.
func (c *Core) Advance() (err error) {
	if c.err != nil || !c.inEffects {
		return c.err
	}
	defer c.recoverPanic(&err)
	c.inEffects = false
	rd := c.ready
	c.ready = raft.Ready{}
	if !raft.IsEmptySnap(rd.Snapshot) {
		c.memory.restore(rd.Snapshot)
	}
	if !raft.IsEmptyHardState(rd.HardState) {
		c.memory.state = rd.HardState
	}
	c.memory.append(rd.Entries)
	c.node.Advance(rd)
	c.acknowledgeChanges()
	return c.err
}

// stopped returns the error for callers of a node that has ended. It wraps the node's own
// error, which callers could otherwise understand as the result of an update.
func stopped(why error) error {
	if why == nil || errors.Is(why, fsm.ErrStopped) {
		return why
	}
	return fmt.Errorf("%w: %w", fsm.ErrStopped, why)
}

// Fail ends all requests that wait, when the node stops.
func (c *Core) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
	err = stopped(err)
	unknown := fmt.Errorf("%w: %w", fsm.ErrUnknown, err)
	c.proposalsMu.Lock()
	c.pending.fail(err, unknown)
	c.clientUpdates.fail(err, unknown)
	c.proposalsMu.Unlock()
	c.reads.fail(err)
	c.failChanges(unknown)
}
