package raft

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// ErrMessage: a message of a peer is not valid in this group.
var ErrMessage = errors.New("raft: not a message of a peer")

// ErrLogLost: a peer knows that this node has saved entries that are not in its log. The
// disk was exchanged or emptied. The node must not vote or acknowledge entries any more,
// because it may have lost its promises: remove it and add another node.
var ErrLogLost = errors.New("raft: the log of this node is lost, or shorter than what the node has acknowledged")

// ErrConflict: the leader's log contradicts entries that this node knows to be committed.
// One of the two nodes has lost its log, or belongs to another group. The node must stop,
// because its state differs from that of the other members.
var ErrConflict = errors.New("raft: the committed log of this node contradicts the leader's log")

// entryBytesMax limits an entry: a batch, and the largest update after it.
const entryBytesMax = batchBytesMax + updateBytesMax + 1<<10

// errNonMember: only members may send this kind of message.
var errNonMember = fmt.Errorf("%w: its sender is not a member", ErrMessage)

// acceptedFromNonMembers are the messages that are accepted from nodes that this node
// does not know as members. They may have been added while this node was down, and one of
// them may be the leader or may need its vote.
var acceptedFromNonMembers = map[pb.MessageType]bool{
	pb.MsgApp: true, pb.MsgSnap: true, pb.MsgHeartbeat: true, pb.MsgTimeoutNow: true, pb.MsgVote: true, pb.MsgPreVote: true,
}

// Message is a message to a peer.
type Message struct {
	To uint64
	*pb.Message
}

// promises reports whether a message confirms that something was written. Such a message
// must be sent after the write. A leader's message about its own log promises nothing
// until a majority has the entries, so it may be sent while the leader's disk still
// writes.
func promises(m *pb.Message) bool {
	switch m.GetType() {
	case pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap, pb.MsgProp, pb.MsgReadIndex:
		return false
	}
	return true
}

// entryTypes are the types of entries that nodes create.
var entryTypes = map[pb.EntryType]bool{pb.EntryNormal: true, pb.EntryConfChangeV2: true}

// checkMessage validates a message before the engine handles it, because the engine
// trusts its peers. from is the sender according to the transport.
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
			return fmt.Errorf("%w: it ends at %d, but a peer saw that it was saved up to %d. %s", ErrLogLost, last, m.GetCommit(), lostLogAdvice(c.config.LostLog, c.config.Name, c.config.Peers[c.config.Name]))
		}
	case pb.MsgProp:
		for _, e := range m.Entries {
			if e.GetType() != pb.EntryNormal || len(e.Data) > entryBytesMax { // only the leader proposes changes of the members
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
		if last := c.memory.last(); leads && !m.GetReject() && m.GetIndex() > last { // the leader has written all entries of its term itself, so its log has lost entries
			return fmt.Errorf("%w: it ends at %d, and %s has more of it, up to %d. %s", ErrLogLost, last, c.members[from].Name, m.GetIndex(), lostLogAdvice(c.config.LostLog, c.config.Name, c.config.Peers[c.config.Name]))
		}
	case pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp, pb.MsgHeartbeatResp,
		pb.MsgTimeoutNow, pb.MsgTransferLeader:
	default:
		return fmt.Errorf("%w: %v", ErrMessage, m.GetType())
	}
	return nil
}

// checkCommitted compares the term of an entry of a leader with the term of the same
// entry if it is committed here. The leader of the current term has all committed
// entries. A leader of an earlier term may have written other entries.
func (c *Core) checkCommitted(m *pb.Message, index, term uint64) error {
	if m.GetTerm() < c.node.BasicStatus().GetTerm() || index > c.memory.state.GetCommit() { // the saved commit index: memory has all entries up to it
		return nil
	}
	own, err := c.memory.Term(index)
	if err != nil || own == term { // compacted, or equal
		return nil
	}
	return fmt.Errorf("%w: entry %d is of term %d here, and of term %d at %s. One of the two nodes has lost its log or belongs to another group. Compare their logs (topoctl log dump). To continue with the leader's log: %s",
		ErrConflict, index, own, term, c.members[m.GetFrom()].Name, lostLogAdvice(c.config.LostLog, c.config.Name, c.config.Peers[c.config.Name]))
}
