package raft

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// pendingChange is a membership change that waits for the ids of nodes that become
// members or voters. The leader asks these nodes for their ids before it makes the
// change. So a node that does not run gets no vote, and operators never type an id. The
// id from an earlier message of the node cannot be used, because the disk of the node may
// have been emptied since.
type pendingChange struct {
	changes []Change
	w       Waiter
	begin   func() bool // reports whether the caller still waits
	until   int64       // tick at which the change fails; 0: it waits until the caller abandons it
	number  uint64      // of the questions
	nextAsk int64       // tick of the next questions
}

// noAnswerText says that a node for which the change waits has not answered.
func noAnswerText(name string) string {
	return name + " has not answered with its id; is it running, with some members among its peers?"
}

// missingMember names a node for which the change waits, or returns "".
func (p *pendingChange) missingMember() string {
	for _, o := range p.changes {
		if o.needsID() && o.Address == "" {
			return o.Name
		}
		if o.needsID() {
			return fmt.Sprintf("%s (%s)", o.Name, o.Address)
		}
	}
	return ""
}

// changeMembers makes changes of the members, after it has asked new members for their
// ids. It calls begin before it proposes the change, and does not propose the change if
// begin returns false. The change fails if new members have not answered within timeout.
// If timeout is 0, it waits until it is abandoned.
func (n *Node) changeMembers(changes []Change, timeout time.Duration, begin func() bool, w Waiter) {
	c := &pendingChange{changes: append([]Change(nil), changes...), w: w, begin: begin, number: nonce()}
	if timeout > 0 {
		c.until = n.ticks + int64(timeout/n.config.Tick)
	}
	if err := n.startChange(c); err != nil {
		w.Done(fsm.Applied{Err: err})
	}
}

func (n *Node) startChange(c *pendingChange) error {
	if n.pendingChange != nil {
		return errOtherChange
	}
	if err := n.mayRename(c.changes); err != nil {
		return err
	}
	if c.missingMember() == "" {
		n.proposeChange(c)
		return nil
	}
	if err := n.core.mayChange(); err != nil {
		return err
	}
	planned := slices.Clone(c.changes)
	for i := range planned {
		if planned[i].adds() {
			planned[i].ID = newID() // a placeholder for the unknown id
		}
	}
	p, err := n.core.members.plan(planned)
	if err == nil && !slices.ContainsFunc(planned, func(o Change) bool { return o.Force }) {
		err = n.core.checkQuorumAfter(p) // checked again when all have answered
	}
	if err != nil {
		return err
	}
	if n.config.Transport == nil {
		return fmt.Errorf("%w: this node is a group of one disk without peers, and cannot reach other nodes", ErrMembers)
	}
	n.pendingChange = c
	for _, o := range c.changes {
		if o.adds() && o.Address != "" {
			n.setPeer(o.Name, n.address(o.Name, o.Address))
		}
	}
	n.pollNewMembers()
	return nil
}

// mayRename refuses to rename a member that has not restarted since its last renaming.
// The member still uses its previous name, and another renaming would make that name
// unknown.
func (n *Node) mayRename(changes []Change) error {
	for _, o := range changes {
		m, known := n.core.members.named(o.Name)
		_, used := n.core.members.named(o.To) // used names are refused later, with another error
		if o.Kind != Rename || o.Force || !known || used || m.Was == "" {
			continue
		}
		current := n.peerNames[m.ID]
		if m.ID == n.core.id {
			current = n.config.Core.Name
		}
		if current != m.Name {
			return fmt.Errorf("%w: %q was renamed from %q and has not sent a message under its new name yet: start it as %q first", ErrMembers, m.Name, m.Was, m.Name)
		}
	}
	return nil
}

// pollNewMembers asks the nodes that have not answered, a few times per election timeout.
func (n *Node) pollNewMembers() {
	c := n.pendingChange
	if c == nil {
		return
	}
	if _, leads := n.core.Leads(); !leads {
		n.failPendingChange(&fsm.NotLeader{Leader: n.core.members[n.core.leader].Name})
		return
	}
	if c.until > 0 && n.ticks >= c.until {
		n.failPendingChange(fmt.Errorf("%w: %s", ErrMembers, noAnswerText(c.missingMember())))
		return
	}
	if n.ticks < c.nextAsk {
		return
	}
	c.nextAsk = n.ticks + max(1, int64(n.core.config.ElectionTicks)/4)
	for _, o := range c.changes {
		if !o.needsID() {
			continue
		}
		name := o.Name
		if m, known := n.core.members.named(name); known {
			name = n.nameOf(m.ID)
		}
		n.sendIntroduction(name, 0, c.number)
	}
}

// takeMemberID handles the answer of a node that becomes a member or a voter.
func (n *Node) takeMemberID(m *peerMessage) error {
	c := n.pendingChange
	if c == nil || m.introduction.answerTo != c.number {
		return nil
	}
	for i := range c.changes {
		if err := n.takeIDFor(&c.changes[i], m); err != nil {
			n.failPendingChange(fmt.Errorf("%w: %w", ErrMembers, err))
			return nil
		}
	}
	if c.missingMember() == "" {
		n.pendingChange = nil
		n.proposeChange(c)
	}
	return nil
}

// takeIDFor handles the answer for one change, if the answer belongs to it.
func (n *Node) takeIDFor(o *Change, m *peerMessage) error {
	member, known := n.core.members.named(o.Name)
	sender, isMember := n.core.members[m.id]
	switch {
	case !o.needsID():
	case known && m.id == member.ID:
		o.ID = m.id
	case m.name == o.Name && isMember && m.groupID == n.core.groupID: // it was renamed, and its old name is used again
		return fmt.Errorf("the node that runs as %s is still the member %s, which was renamed. Start it as %s, start the other node as %s, and repeat the change. Keep the folder of %s",
			o.Name, sender.Name, sender.Name, o.Name, sender.Name)
	case known && (m.name == member.Name || m.name == member.Was):
		return fmt.Errorf("%s is the node with id %s, but the node that answers has the id %s: its disk was emptied or exchanged. %s",
			o.Name, groupText(member.ID), groupText(m.id), wrongDiskAdvice(n.core.config.LostLog, o.Name, member.Address))
	case known || m.name != o.Name:
	case m.groupID == 0:
		o.ID = m.id
	case m.groupID == n.core.groupID:
		return fmt.Errorf("%s was a member of this group before, and has its old log. Stop it, empty its folder, start it, and add it again", o.Name)
	default:
		return fmt.Errorf("%s belongs to another group, with identity %s. If this is a mistake, stop it, empty its folder, start it, and add it again", o.Name, groupText(m.groupID))
	}
	return nil
}

// proposeChange passes the change to the core.
func (n *Node) proposeChange(c *pendingChange) {
	if !c.begin() {
		return
	}
	if err := n.core.ChangeMembers(c.changes, c.w); err != nil {
		c.w.Done(fsm.Applied{Err: err})
	}
}

// failPendingChange ends the pending change.
func (n *Node) failPendingChange(err error) {
	c := n.pendingChange
	n.pendingChange = nil
	n.updatePeers(n.core.members.list())
	c.w.Done(fsm.Applied{Err: err})
}

// changeCall is a change that a goroutine waits for.
type changeCall struct {
	call
	begun atomic.Int32
}

const (
	changeWaiting int32 = iota // for the ids of new members; nothing is proposed
	changeProposed
	changeAbandoned // the caller has stopped waiting
)

// ChangeMembers changes the members of the group. It waits until new members have sent
// their ids, and until the change is made, or until ctx ends.
func (n *Node) ChangeMembers(ctx context.Context, changes ...Change) error {
	c := &changeCall{call: call{answer: make(chan struct{}, 1)}}
	if err := n.put(func(b *inbox) {
		b.calls = append(b.calls, func(*Core) { n.changeMembers(changes, 0, c.begin, c) })
	}); err != nil {
		return err
	}
	select {
	case <-c.answer:
		return c.a.Err
	case <-ctx.Done():
	}
	// abandonChange is queued before begun is checked. The loop may still propose the
	// change before it runs abandonChange. Then the swap of begun fails, and the outcome
	// is unknown.
	_ = n.put(func(b *inbox) { b.calls = append(b.calls, func(*Core) { n.abandonChange(c) }) })
	if !c.begun.CompareAndSwap(changeWaiting, changeAbandoned) {
		return fmt.Errorf("%w: %w", fsm.ErrUnknown, ctx.Err())
	}
	what := "the change was not proposed yet"
	if o := (&pendingChange{changes: changes}).missingMember(); o != "" {
		what = noAnswerText(o)
	}
	return fmt.Errorf("%w: %s %w", ErrMembers, what, ctx.Err())
}

// abandonChange removes the waiter of a change.
func (n *Node) abandonChange(w Waiter) {
	if c := n.pendingChange; c != nil && c.w == w {
		n.pendingChange = nil
		n.updatePeers(n.core.members.list())
	}
	n.core.AbandonChange(w)
}

func (c *changeCall) begin() bool { return c.begun.CompareAndSwap(changeWaiting, changeProposed) }
