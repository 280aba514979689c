package raft

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/fsm"
)

const nonceBytes = 8

// ChangeMembers proposes changes of the members. w receives the result. Only a leader
// accepts changes, one call at a time.
func (c *Core) ChangeMembers(changes []Change, w Waiter) (err error) {
	defer c.recoverPanic(&err)
	if err := c.mayChange(); err != nil {
		return err
	}
	p, err := c.members.plan(changes)
	if err == nil && !slices.ContainsFunc(changes, func(o Change) bool { return o.Force }) {
		err = c.checkQuorumAfter(p)
	}
	if err != nil {
		return err
	}
	term, _ := c.Leads()
	c.changeNumber++
	nonce := c.config.Nonce + c.changeNumber
	context := binary.BigEndian.AppendUint64(nil, nonce)
	if err := c.node.ProposeConfChange(&pb.ConfChangeV2{Changes: p.singles, Context: appendMembers(context, p.list)}); err != nil {
		return fmt.Errorf("%w: %w", ErrMembers, err)
	}
	c.changes[nonce] = w
	c.proposedChange = proposedChange{nonce, term}
	return nil
}

// mayChange returns the reason why the members cannot be changed now.
func (c *Core) mayChange() error {
	status := c.node.BasicStatus()
	switch {
	case c.err != nil:
		return stopped(c.err)
	case status.RaftState != raft.StateLeader:
		return &fsm.NotLeader{Leader: c.members[status.Lead].Name}
	case len(c.conf.GetVotersOutgoing()) > 0 || len(c.changes) > 0 || c.proposedChange.nonce != 0:
		return errOtherChange
	}
	return nil
}

var errOtherChange = fmt.Errorf("%w: another change is being made", ErrMembers)

// proposedChange is a change that was passed to the engine, and the term in which it was
// passed.
type proposedChange struct{ nonce, term uint64 }

// checkProposedChange looks for the proposed change among the new entries of the engine.
// The engine replaces the change with an empty entry in two cases: an earlier change is
// not applied yet, or entries from before the election of this leader are not applied
// yet.
func (c *Core) checkProposedChange(entries []*pb.Entry) {
	a := c.proposedChange
	c.proposedChange = proposedChange{}
	if a.nonce == 0 {
		return
	}
	if term, leads := c.Leads(); !leads || term != a.term {
		return // the change may have been sent, so its outcome is unknown
	}
	for _, e := range entries {
		var change pb.ConfChangeV2
		if e.GetType() == pb.EntryConfChangeV2 && proto.Unmarshal(e.Data, &change) == nil &&
			len(change.Context) >= nonceBytes && binary.BigEndian.Uint64(change.Context) == a.nonce {
			return
		}
	}
	if w := c.changes[a.nonce]; w != nil {
		delete(c.changes, a.nonce)
		w.Done(fsm.Applied{Err: errOtherChange})
	}
}

// checkRemoved checks whether this node was removed. During joint consensus a leaving
// node still has a vote.
func (c *Core) checkRemoved() {
	if len(c.members) > 0 && c.Stranger(c.id) {
		c.Removed()
	}
}

// Removed records that the node was removed. The node keeps running for some time,
// because other members that have not received the removal may need its vote.
func (c *Core) Removed() {
	if !c.removed {
		c.removed, c.removedTick = true, c.tick
	}
}

// needRemovedNode are the messages of nodes that still count this one as a member. They
// need its vote until they know that its removal is committed.
var needRemovedNode = map[pb.MessageType]bool{
	pb.MsgPreVote: true, pb.MsgVote: true, pb.MsgApp: true, pb.MsgHeartbeat: true, pb.MsgSnap: true,
}

// isNeeded reports whether a node that was removed must keep running. This is the case
// while it still leads and, as far as it knows, no majority of the members has the entry
// with its removal. Without a majority it leads for at most one election timeout.
func (c *Core) isNeeded() bool {
	if _, leads := c.Leads(); !leads {
		return false
	}
	progress, have := c.node.Status().Progress, 0
	voters := c.conf.GetVoters()
	for _, id := range voters {
		if progress[id].Match >= c.memory.membersIndex && c.answers(id) {
			have++
		}
	}
	return have <= len(voters)/2
}

// changedBy returns the members that an entry of the log changes.
func changedBy(e *pb.Entry) []Member {
	var change pb.ConfChangeV2
	if e.GetType() != pb.EntryConfChangeV2 || proto.Unmarshal(e.Data, &change) != nil || len(change.Context) < nonceBytes {
		return nil
	}
	list, _ := readMembers(change.Context[nonceBytes:])
	return list
}

// applyChange applies a committed entry that changes the members.
func (c *Core) applyChange(entry *pb.Entry) {
	var change pb.ConfChangeV2
	if err := proto.Unmarshal(entry.Data, &change); err != nil {
		c.err = fmt.Errorf("%w: entry %d: %w", ErrEngine, entry.GetIndex(), err)
		return
	}
	c.conf = c.node.ApplyConfChange(&change)
	c.memory.membersIndex = entry.GetIndex()
	if len(change.Context) < nonceBytes { // the end of joint consensus, which the engine proposes itself
		c.members.apply(nil, c.conf)
		c.effects.Members = c.members.list()
		c.checkRemoved()
		return
	}
	list, err := readMembers(change.Context[nonceBytes:])
	if err != nil {
		c.err = fmt.Errorf("%w: entry %d: %w", ErrEngine, entry.GetIndex(), err)
		return
	}
	c.members.apply(list, c.conf)
	maps.DeleteFunc(c.contacts, func(id uint64, _ contact) bool { return c.Stranger(id) })
	c.effects.Members = c.members.list()
	c.checkRemoved()
	c.madeChanges = append(c.madeChanges, madeChange{binary.BigEndian.Uint64(change.Context), fsm.Applied{Index: entry.GetIndex(), Term: entry.GetTerm()}})
}

// madeChange is a change of the members that is committed and applied.
type madeChange struct {
	nonce   uint64
	applied fsm.Applied
}

// acknowledgeChanges answers the callers of changes whose commit is durable.
func (c *Core) acknowledgeChanges() {
	for _, m := range c.madeChanges {
		if w := c.changes[m.nonce]; w != nil {
			delete(c.changes, m.nonce)
			w.Done(m.applied)
		}
	}
	c.madeChanges = c.madeChanges[:0]
}

// leaveJoint proposes the end of joint consensus if the engine has not proposed it. The
// engine proposes it only when it applies an entry, and not during a transfer of the
// leadership. Without leaveJoint, a group without new entries would never leave joint
// consensus, and would refuse all changes.
func (c *Core) leaveJoint() {
	if _, leads := c.Leads(); !leads || len(c.conf.GetVotersOutgoing()) == 0 || c.applied != c.memory.last() {
		return
	}
	_ = c.node.ProposeConfChange(&pb.ConfChangeV2{}) // if the engine refuses, the next tick tries again
}

// AbandonChange removes the waiter of a change.
func (c *Core) AbandonChange(w Waiter) {
	for nonce, other := range c.changes {
		if other == w {
			delete(c.changes, nonce)
		}
	}
}

func sortKeys(keys []sessionKey) {
	slices.SortFunc(keys, func(a, b sessionKey) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.sequence, b.sequence))
	})
}

// failChanges ends the changes that wait.
func (c *Core) failChanges(err error) {
	for _, nonce := range slices.Sorted(maps.Keys(c.changes)) {
		w := c.changes[nonce]
		delete(c.changes, nonce)
		w.Done(fsm.Applied{Err: err})
	}
}
