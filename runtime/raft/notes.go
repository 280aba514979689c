package raft

import (
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
)

// noting is a state machine that has its node say something in the log, such as the
// checksum of its state; *fsm.Replicated is one.
type noting interface {
	Members(voters, learners []uint64) error
	Notes(node, every uint64) fsm.Notes
}

// notes are what the node is to say in the log. They are proposed until the state
// machine has seen them there, by followers that pass no updates on, too.
type notes struct {
	fsm.Notes
	term uint64 // in which they were proposed last; 0: not yet
	tick int64
}

// members has the state machine know who belongs to the group from here on.
func (k *applier) setMembers() error {
	if k.noting == nil {
		return nil
	}
	return k.noting.Members(k.position.conf.GetVoters(), k.position.conf.GetLearners())
}

// note takes what the node is to say now. It reports whether that is something else than
// before.
func (k *applier) updateNotes() bool {
	if k.noting == nil || k.node.core == nil {
		return false
	}
	n := k.noting.Notes(k.node.core.id, k.node.config.ChecksumEvery)
	if n == k.notes {
		return false
	}
	k.notes = n
	k.node.core.Note(n)
	return true
}

// Note takes what the node is to say in the log, in place of what that was before. Any
// goroutine may call it.
func (c *Core) Note(n fsm.Notes) {
	c.proposalsMu.Lock()
	defer c.proposalsMu.Unlock()
	c.notes = notes{Notes: n}
	c.pending.check = nil
	if n.Allowed != nil {
		c.pending.check = c.checkAllowed
	}
}

// allowed says why the log may not have an update yet: nodes that the error names run a
// program that does not know it; c.proposals is locked.
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
	if len(names) == 0 { // this one alone: what it has said of itself is not applied yet
		return err
	}
	slices.Sort(names)
	return fmt.Errorf("%w. Start the newer program on %s", err, strings.Join(names, ", "))
}

// proposeNotes proposes what the node is to say, where that was not or may be lost;
// c.proposals is locked.
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
		_ = c.node.Propose(data) // or again later
		return
	}
	c.toLeader = append(c.toLeader, Message{c.leader, &pb.Message{
		Type: pb.MsgProp.Enum(), From: new(c.id), To: new(c.leader), Entries: []*pb.Entry{{Data: data}},
	}})
}
