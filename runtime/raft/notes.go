package raft

import (
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
)

// noteMaker is a state machine that makes notes in the log, such as the checksum of its
// state; *fsm.Replicated is one.
type noteMaker interface {
	Members(voters, learners []uint64) error
	Notes(node, every uint64) fsm.Notes
}

// notes are the notes that the node must write to the log. They are proposed until the
// state machine has applied them, even by followers that do not forward updates.
type notes struct {
	fsm.Notes
	term uint64 // of the last proposal; 0: not proposed yet
	tick int64
}

// setMembers passes the members of the group at the current position to the state
// machine.
func (a *applier) setMembers() error {
	if a.noteMaker == nil {
		return nil
	}
	return a.noteMaker.Members(a.position.conf.GetVoters(), a.position.conf.GetLearners())
}

// updateNotes passes the notes of the state machine to the core. It reports whether they
// have changed.
func (a *applier) updateNotes() bool {
	if a.noteMaker == nil || a.node.core == nil {
		return false
	}
	n := a.noteMaker.Notes(a.node.core.id, a.node.config.ChecksumEvery)
	if n == a.notes {
		return false
	}
	a.notes = n
	a.node.core.Note(n)
	return true
}

// Note replaces the notes that the node must write to the log. Any goroutine may call it.
func (c *Core) Note(n fsm.Notes) {
	c.proposalsMu.Lock()
	defer c.proposalsMu.Unlock()
	c.notes = notes{Notes: n}
	c.pending.check = nil
	if n.Allowed != nil {
		c.pending.check = c.checkAllowed
	}
}

// checkAllowed returns an error if an update must not be written to the log yet, because
// the programs of some nodes do not know one of its fields. The error names these nodes.
// The caller holds c.proposalsMu.
func (c *Core) checkAllowed(update []byte) error {
	err := c.notes.Allowed.Check(update)
	if err == nil {
		return nil
	}
	var names []string
	for _, id := range c.notes.Allowed.Behind {
		if id != c.id {
			names = append(names, c.members[id].Name)
		}
	}
	if len(names) == 0 { // only this node: its own description is not applied yet
		return err
	}
	slices.Sort(names)
	return fmt.Errorf("%w. Start the newer program on %s", err, strings.Join(names, ", "))
}

// proposeNotes proposes the notes that were not proposed yet or may be lost. The caller
// holds c.proposalsMu.
func (c *Core) proposeNotes() {
	n := &c.notes
	leads := c.leader == c.id
	timeout := int64(retryTimeouts * c.config.ElectionTicks)
	if n.Notes == (fsm.Notes{}) || n.term == c.term && c.tick-n.tick < timeout {
		return
	}
	c.batch.Reset(c.now())
	if n.Mark && leads {
		c.batch.Mark()
	}
	if n.Describe {
		c.batch.Describe(c.id, c.config.Types, c.pending.nonce)
	}
	if n.At != 0 {
		c.batch.Sum(c.id, n.At, n.Sum)
	}
	if c.batch.Len() == 0 {
		return
	}
	data := slices.Clone(c.batch.Bytes())
	n.term, n.tick = c.term, c.tick
	if leads || c.config.Forward {
		_ = c.node.Propose(data) // if the engine refuses the proposal, it is made again later
		return
	}
	c.toLeader = append(c.toLeader, Message{c.leader, &pb.Message{
		Type: pb.MsgProp.Enum(), From: new(c.id), To: new(c.leader), Entries: []*pb.Entry{{Data: data}},
	}})
}
