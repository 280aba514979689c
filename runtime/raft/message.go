package raft

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// ErrMessage: a peer has sent what no node of this group sends.
var ErrMessage = errors.New("raft: not a message of a peer")

// ErrLogLost: a peer knows that this node has saved entries that its log does not
// hold. The disk was exchanged or emptied. The node must not take part any more,
// since it may have promised what it forgot: remove it and add another.
var ErrLogLost = errors.New("raft: the log of this node is lost, or shorter than what it has promised")

// ErrConflict: a leader's log contradicts what this node knows to be committed. One of
// them has lost its log, or is of another group. The node must not go on: its state is
// not the others'.
var ErrConflict = errors.New("raft: the committed log of this node contradicts the leader's")

// entryBytesMax bounds an entry: a batch, and the largest update behind it.
const entryBytesMax = batchBytesMax + updateBytesMax + 1<<10

// errStranger: what a node has sent is heard from members alone.
var errNonMember = fmt.Errorf("%w: its sender is not a member", ErrMessage)

// forStrangers are the messages that are heard from nodes that are not members as far as
// this node knows: it may have been away while they were added, and the leader may be
// one of them, or need its vote.
var acceptedFromNonMembers = map[pb.MessageType]bool{
	pb.MsgApp: true, pb.MsgSnap: true, pb.MsgHeartbeat: true, pb.MsgTimeoutNow: true, pb.MsgVote: true, pb.MsgPreVote: true,
}

// Message is one to a peer.
type Message struct {
	To uint64
	*pb.Message
}

// promises reports whether a message says that something was written. Such a one
// is sent when it was. What a leader tells of its own log promises nothing until
// a majority has it, so it may travel while the leader's disk writes.
func promises(m *pb.Message) bool {
	switch m.GetType() {
	case pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap, pb.MsgProp, pb.MsgReadIndex:
		return false
	}
	return true
}

// entryTypes are those that nodes make.
var entryTypes = map[pb.EntryType]bool{pb.EntryNormal: true, pb.EntryConfChangeV2: true}

// checkMessage looks at a message before the engine does, which trusts its
// peers: from is who has sent it according to the transport.
func (c *Core) checkMessage(from uint64, m *pb.Message) error {
	if m.GetFrom() != from || m.GetTo() != c.id {
		return fmt.Errorf("%w: it says that it is from %x to %x, but it came from %x to %x", ErrMessage, m.GetFrom(), m.GetTo(), from, c.id)
	}
	switch m.GetType() {
	case pb.MsgApp:
		index := m.GetIndex()
		for _, e := range m.Entries {
			if index++; e.GetIndex() != index || e.GetTerm() > m.GetTerm() || e.GetTerm() == 0 {
				return fmt.Errorf("%w: its entries do not follow each other", ErrMessage)
			}
			if !entryTypes[e.GetType()] {
				return fmt.Errorf("%w: an entry of type %v", ErrMessage, e.GetType())
			}
		}
		if err := c.checkCommitted(m, m.GetIndex(), m.GetLogTerm()); err != nil {
			return err
		}
		for _, e := range m.Entries {
			if err := c.checkCommitted(m, e.GetIndex(), e.GetTerm()); err != nil {
				return err
			}
		}
	case pb.MsgSnap:
		meta := m.GetSnapshot().GetMetadata()
		if meta.GetIndex() == 0 || len(meta.GetConfState().GetVoters()) == 0 || meta.GetTerm() > m.GetTerm() {
			return fmt.Errorf("%w: a snapshot without an index or members", ErrMessage)
		}
		switch h, rest, err := readSnapshot(m.GetSnapshot().GetData()); {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrMessage, err)
		case len(rest) > 0:
			return fmt.Errorf("%w: a snapshot whose message holds more than its head", ErrMessage)
		case h.groupID != 0 && h.groupID != c.groupID:
			return fmt.Errorf("%w: a snapshot of the group with identity %s, not %s", ErrMessage, groupText(h.groupID), groupText(c.groupID))
		}
		if err := c.checkCommitted(m, meta.GetIndex(), meta.GetTerm()); err != nil {
			return err
		}
	case pb.MsgHeartbeat:
		if last := c.memory.last(); m.GetTerm() >= c.node.BasicStatus().GetTerm() && m.GetCommit() > last {
			return fmt.Errorf("%w: it ends at %d, but a peer saw that it was saved up to %d. %s", ErrLogLost, last, m.GetCommit(), lostLogAdvice(c.config.Name, c.config.Peers[c.config.Name]))
		}
	case pb.MsgProp:
		for _, e := range m.Entries {
			if e.GetType() != pb.EntryNormal || len(e.Data) > entryBytesMax { // who leads changes the members
				return fmt.Errorf("%w: a proposal of type %v, %d bytes", ErrMessage, e.GetType(), len(e.Data))
			}
		}
		if len(m.Entries) == 0 {
			return fmt.Errorf("%w: a proposal without entries", ErrMessage)
		}
	case pb.MsgReadIndex:
		if len(m.Entries) != 1 {
			return fmt.Errorf("%w: a read without a key", ErrMessage)
		}
	case pb.MsgReadIndexResp:
		if len(m.Entries) != 1 {
			return fmt.Errorf("%w: the answer to a read without its key", ErrMessage)
		}
	case pb.MsgAppResp:
		b := c.node.BasicStatus()
		leads := b.RaftState == raft.StateLeader && m.GetTerm() == b.GetTerm()
		if last := c.memory.last(); leads && !m.GetReject() && m.GetIndex() > last { // this one has written all of its term, and lacks some
			return fmt.Errorf("%w: it ends at %d, and %s has more of it, up to %d. %s", ErrLogLost, last, c.members[from].Name, m.GetIndex(), lostLogAdvice(c.config.Name, c.config.Peers[c.config.Name]))
		}
	case pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp, pb.MsgHeartbeatResp,
		pb.MsgTimeoutNow, pb.MsgTransferLeader:
	default:
		return fmt.Errorf("%w: %v", ErrMessage, m.GetType())
	}
	return nil
}

// conflict compares the term of an entry, as a leader has it, with the one that this
// node knows to be committed. The leader of a term has all that was committed before;
// one of an earlier term may have written something else.
func (c *Core) checkCommitted(m *pb.Message, index, term uint64) error {
	if m.GetTerm() < c.node.BasicStatus().GetTerm() || index > c.memory.state.GetCommit() { // as saved: memory has all up to there
		return nil
	}
	own, err := c.memory.Term(index)
	if err != nil || own == term { // it is compacted, or equal
		return nil
	}
	return fmt.Errorf("%w: entry %d is of term %d here, and of term %d at %s. One of the two has lost its log, or is of another group. Compare their logs (topoctl log dump). To go on with the leader's: %s",
		ErrConflict, index, own, term, c.members[m.GetFrom()].Name, lostLogAdvice(c.config.Name, c.config.Peers[c.config.Name]))
}
