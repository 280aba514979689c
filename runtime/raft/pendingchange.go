package raft

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// candidates are nodes that will be members, or will get a vote. They are asked for their
// ids before the change is made: so a node that does not run gets no vote, and people
// never type an id. A message that came late may be of a disk that was emptied since.
type pendingChange struct {
	changes []Change
	w       Waiter
	begin   func() bool // reports whether whoever asked for the change still waits
	until   int64       // tick at which the change is given up; 0: whoever asked for it says so
	number  uint64      // of the questions
	nextAsk int64       // tick of the next
}

// notHeard says that nothing was heard of a node for which the change waits.
func noAnswerText(name string) string {
	return name + " has not answered with its id; is it running, with some members among its peers?"
}

// waiting says for whom a change waits; "": for no one.
func (c *pendingChange) missingMember() string {
	for _, o := range c.changes {
		if o.needsID() && o.Address == "" {
			return o.Name
		}
		if o.needsID() {
			return fmt.Sprintf("%s (%s)", o.Name, o.Address)
		}
	}
	return ""
}

// changeMembers asks for changes of the members, first the new ones for their ids. begin
// is called before the change is proposed; where it returns false it is not. It gives up
// when the new ones have not answered within timeout; 0: when it is abandoned.
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
			planned[i].ID = newID() // as if it were known
		}
	}
	p, err := n.core.members.plan(planned)
	if err == nil && !slices.ContainsFunc(planned, func(o Change) bool { return o.Force }) {
		err = n.core.checkQuorumAfter(p) // it is looked at again when all have answered
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

// mayRename refuses to rename a member that still speaks under the name before its last
// one: nobody would know it under that any more.
func (n *Node) mayRename(changes []Change) error {
	for _, o := range changes {
		m, known := n.core.members.named(o.Name)
		_, used := n.core.members.named(o.To) // which is refused for that
		if o.Kind != Rename || o.Force || !known || used || m.Was == "" {
			continue
		}
		speaks := n.peerNames[m.ID]
		if m.ID == n.core.id {
			speaks = n.config.Core.Name
		}
		if speaks != m.Name {
			return fmt.Errorf("%w: %q was renamed from %q and has not sent a message under its new name yet: start it as %q first", ErrMembers, m.Name, m.Was, m.Name)
		}
	}
	return nil
}

// watchCandidates asks the candidates that have not answered, a few times an election timeout.
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

// candidate takes the answer of a node that is to be a member, or to get a vote.
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

// candidateOf takes the answer for a change, if it is about that.
func (n *Node) takeIDFor(o *Change, m *peerMessage) error {
	member, known := n.core.members.named(o.Name)
	switch {
	case !o.needsID():
	case known && m.id == member.ID:
		o.ID = m.id
	case known && (m.name == member.Name || m.name == member.Was):
		return fmt.Errorf("%s is the node with id %s, but the node that answers has the id %s: its disk was emptied or exchanged. %s",
			o.Name, groupText(member.ID), groupText(m.id), wrongDiskAdvice(o.Name, member.Address))
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

// proposeChange has the core make the change.
func (n *Node) proposeChange(c *pendingChange) {
	if !c.begin() {
		return
	}
	if err := n.core.ChangeMembers(c.changes, c.w); err != nil {
		c.w.Done(fsm.Applied{Err: err})
	}
}

// dropCandidates ends the change that waits for them.
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
	changeWaiting int32 = iota // for the ids of new members: nothing is proposed
	changeProposed
	changeAbandoned // whoever asked for it has gone
)

// ChangeMembers changes who belongs to the group. It waits, as long as ctx lives, until
// new members say who they are, and until the change is made.
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
	// The loop is told first. The change may still begin before it hears: then the outcome
	// is unknown, and begun says so.
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

// abandonChange forgets who waits for a change.
func (n *Node) abandonChange(w Waiter) {
	if c := n.pendingChange; c != nil && c.w == w {
		n.pendingChange = nil
		n.updatePeers(n.core.members.list())
	}
	n.core.AbandonChange(w)
}

func (c *changeCall) begin() bool { return c.begun.CompareAndSwap(changeWaiting, changeProposed) }
