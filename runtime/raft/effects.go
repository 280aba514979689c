package raft

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
)

// Effects is what the driver does, in the order of the fields.
type Effects struct {
	Early    []Message     // to be sent at once: they promise nothing
	Snapshot *pb.Snapshot  // to be saved, nil for none; its head: the state, which has come before, is installed before Apply
	State    *pb.HardState // to be saved with the entries, nil for none
	Entries  []*pb.Entry   // to be saved
	Sync     bool          // State and Entries must be durable before Late is sent
	Late     []Message     // to be sent then
	Apply    []Committed   // for the state machine, in order
	Reads    []Waiter      // may read when all that is applied
	Members  []Member      // all of them, where they have changed
}

// Committed is a committed entry.
type Committed struct {
	Index, Term uint64
	Data        []byte      // for the state machine; empty: nothing
	Membership  *membership // from this entry on, where it has changed
}

// membership is who belongs to the group, as snapshots tell it.
type membership struct {
	members []Member
	conf    *pb.ConfState
}

// HasEffects reports whether there is something to do.
func (c *Core) HasEffects() bool {
	if c.err != nil {
		return false
	}
	c.updateLeader()
	c.propose()
	return c.err == nil && (c.node.HasReady() || c.readable() || len(c.toLeader) > 0)
}

// readable reports whether reads wait for nothing but the driver.
func (c *Core) readable() bool {
	for i := range c.reads.rounds {
		if o := &c.reads.rounds[i]; o.index != 0 && o.index <= c.applied {
			return true
		}
	}
	return false
}

// Effects is what is to be done now. The driver calls Advance when it is.
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
	// Where there is one voter alone, the engine answers reads at once, even before it
	// has committed what its log holds from before a crash.
	behind := c.leader == c.id && c.reads.committedTerm != c.term
	for _, m := range rd.Messages {
		if behind && m.GetType() == pb.MsgReadIndexResp {
			m.Index = new(max(m.GetIndex(), c.memory.last()))
		}
		if m.GetType() == pb.MsgSnap {
			c.snapshots[m.GetTo()] = followerSnapshot{index: m.GetSnapshot().GetMetadata().GetIndex()}
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
		if entry.GetType() != pb.EntryNormal && e.State != nil {
			e.Sync = true // who votes must not be forgotten: another disk may be lost that knows it
		}
		c.commit(entry)
	}
	for _, r := range rd.ReadStates {
		if behind {
			r.Index = max(r.Index, c.memory.last())
		}
		if o := c.reads.setIndex(c.config.Nonce, r.RequestCtx, r.Index); o != nil && o.term == c.term && c.leader == c.id {
			c.leaseEnd = o.began + c.config.LeaseTime
		}
	}
	e.Early = append(e.Early, c.toLeader...)
	c.toLeader = c.toLeader[:0]
	e.Reads = c.reads.ready(c.applied, e.Reads)
	return *e
}

// commit takes a committed entry: what changes the members is the Core's.
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

// install takes a leader's snapshot.
func (c *Core) install(s *pb.Snapshot) {
	h, _, err := readSnapshot(s.GetData()) // checked when it came
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
	c.pending.repropose() // results of what was proposed may lie within: the session has them
	c.clientUpdates.repropose()
}

// Advance tells that the Effects were carried out.
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
	return c.err
}

// stopped is what callers are told who ask a node that has ended: not its error alone,
// which they could take for the answer of an update.
func stopped(why error) error {
	if why == nil || errors.Is(why, fsm.ErrStopped) {
		return why
	}
	return fmt.Errorf("%w: %w", fsm.ErrStopped, why)
}

// Fail ends all that wait, when the node stops.
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
