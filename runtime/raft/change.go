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

// ChangeKind is what happens to a member.
type ChangeKind uint8

const (
	AddLearner ChangeKind = iota // a new member gets the log, and has no vote yet
	AddVoter                     // a new member has a vote at once: better AddLearner, and Promote when it has the log
	Promote                      // a learner gets a vote
	Remove                       // a member leaves for good: its name is never given again
)

// Change is one change of the members. Several that are made together come about
// together, by joint consensus.
type Change struct {
	Kind    ChangeKind
	Name    string
	Address string // of a new member
}

const nonceBytes = 8

// ChangeMembers asks for changes of the members; w is told when they are made.
// Only a leader takes them, and one after the other.
func (c *Core) ChangeMembers(changes []Change, w Waiter) (err error) {
	if c.err != nil {
		return c.err
	}
	defer c.caught(&err)
	status := c.node.BasicStatus()
	if status.RaftState != raft.StateLeader {
		return &fsm.NotLeader{Leader: c.members[status.Lead].Name}
	}
	if len(c.conf.GetVotersOutgoing()) > 0 || len(c.changes) > 0 || c.asked.nonce != 0 {
		return errOtherChange
	}
	singles, list, err := c.members.plan(changes)
	if err != nil {
		return err
	}
	c.changeNumber++
	nonce := c.config.Nonce + c.changeNumber
	context := binary.BigEndian.AppendUint64(nil, nonce)
	if err := c.node.ProposeConfChange(&pb.ConfChangeV2{Changes: singles, Context: appendMembers(context, list)}); err != nil {
		return fmt.Errorf("%w: %w", ErrMembers, err)
	}
	c.changes[nonce] = w
	c.asked = asked{nonce, status.GetTerm()}
	return nil
}

var errOtherChange = fmt.Errorf("%w: another change is being made", ErrMembers)

// asked is a change that the engine was asked for, in a term.
type asked struct{ nonce, term uint64 }

// refused looks for what was asked for among the entries that the engine has made
// since. It puts another in the place of a change that it does not take, because it
// has not applied one before, or what it found when it became the leader.
func (c *Core) refused(entries []*pb.Entry) {
	a := c.asked
	c.asked = asked{}
	if a.nonce == 0 {
		return
	}
	if term, leads := c.Leads(); !leads || term != a.term {
		return // it may be on its way, nobody knows
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

// gone reports whether a node was a member and is none any more. In joint consensus
// who leaves still has a vote.
func (c *Core) gone(id uint64) bool {
	return c.members[id].Removed && !slices.Contains(c.conf.GetVotersOutgoing(), id)
}

// seeRemoved looks whether the node itself was removed.
func (c *Core) seeRemoved() {
	if c.gone(c.id) && !c.removed {
		c.removed, c.removedTick = true, c.tick
	}
}

// plan is what the engine is told, and how the members will be.
func (m members) plan(changes []Change) (singles []*pb.ConfChangeSingle, list []Member, err error) {
	if len(changes) == 0 {
		return nil, nil, fmt.Errorf("%w: nothing is to be changed", ErrMembers)
	}
	seen := map[string]bool{}
	voters := 0
	for _, o := range m {
		if !o.Removed && !o.Learner {
			voters++
		}
	}
	for _, c := range changes {
		if c.Name == "" || len(c.Name) > nameBytesMax || len(c.Address) > nameBytesMax || seen[c.Name] {
			return nil, nil, fmt.Errorf("%w: the name %q", ErrMembers, c.Name)
		}
		seen[c.Name] = true
		o, known := m[MemberID(c.Name)]
		kind := pb.ConfChangeAddNode
		switch {
		case known && (o.Removed || o.Name != c.Name):
			return nil, nil, fmt.Errorf("%w: %q was a member before; take another name", ErrMembers, c.Name)
		case (c.Kind == AddLearner || c.Kind == AddVoter) && known:
			return nil, nil, fmt.Errorf("%w: %q is a member", ErrMembers, c.Name)
		case (c.Kind == Promote || c.Kind == Remove) && !known:
			return nil, nil, fmt.Errorf("%w: %q is no member", ErrMembers, c.Name)
		case c.Kind == Promote && !o.Learner:
			return nil, nil, fmt.Errorf("%w: %q has a vote", ErrMembers, c.Name)
		case c.Kind == AddLearner:
			o = Member{Name: c.Name, Address: c.Address, Learner: true}
			kind = pb.ConfChangeAddLearnerNode
		case c.Kind == AddVoter:
			o = Member{Name: c.Name, Address: c.Address}
			voters++
		case c.Kind == Promote:
			o.Learner = false
			voters++
		case c.Kind == Remove:
			if !o.Learner {
				voters--
			}
			o.Removed = true
			kind = pb.ConfChangeRemoveNode
		default:
			return nil, nil, fmt.Errorf("%w: no such change", ErrMembers)
		}
		o.ID = MemberID(c.Name)
		singles = append(singles, &pb.ConfChangeSingle{Type: kind.Enum(), NodeId: new(o.ID)})
		list = append(list, o)
	}
	switch {
	case voters == 0:
		return nil, nil, fmt.Errorf("%w: nobody would have a vote", ErrMembers)
	case len(m)+len(changes) > membersMax:
		return nil, nil, fmt.Errorf("%w: a group has at most %d members, those before counted", ErrMembers, membersMax)
	}
	return singles, list, nil
}

// change takes a committed entry that changes the members.
func (c *Core) change(entry *pb.Entry) {
	var change pb.ConfChangeV2
	if err := proto.Unmarshal(entry.Data, &change); err != nil {
		c.err = fmt.Errorf("%w: entry %d: %w", ErrEngine, entry.GetIndex(), err)
		return
	}
	c.conf = c.node.ApplyConfChange(&change)
	c.memory.changed = entry.GetIndex()
	if len(change.Context) < nonceBytes { // the end of joint consensus, which the engine proposes itself
		c.effects.Members = c.members.list()
		c.seeRemoved()
		return
	}
	list, err := readMembers(change.Context[nonceBytes:])
	if err != nil {
		c.err = fmt.Errorf("%w: entry %d: %w", ErrEngine, entry.GetIndex(), err)
		return
	}
	c.members.apply(list)
	c.effects.Members = c.members.list()
	c.seeRemoved()
	nonce := binary.BigEndian.Uint64(change.Context)
	if w := c.changes[nonce]; w != nil {
		delete(c.changes, nonce)
		w.Done(fsm.Applied{Index: entry.GetIndex(), Term: entry.GetTerm()})
	}
}

// AbandonChange forgets who waits for a change.
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

// forgetSnapshots tells the engine of snapshots that seem lost, so that it sends
// others. One that arrived is answered by the follower.
func (c *Core) forgetSnapshots() {
	for _, id := range slices.Sorted(maps.Keys(c.snapshots)) { // a run is to be the same again
		if c.tick-c.snapshots[id] >= snapshotTicksMax {
			delete(c.snapshots, id)
			c.node.ReportSnapshot(id, raft.SnapshotFailure)
		}
	}
}

// failChanges ends the changes that wait.
func (c *Core) failChanges(err error) {
	for _, nonce := range slices.Sorted(maps.Keys(c.changes)) {
		w := c.changes[nonce]
		delete(c.changes, nonce)
		w.Done(fsm.Applied{Err: err})
	}
}
