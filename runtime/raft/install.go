package raft

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// The node's loop deals with the heads of snapshots; their bodies are the snapshotter's.

// ship has the snapshotter send a snapshot.
func (n *Node) sendSnapshot(m Message) {
	n.snapshotter.put(job{id: m.To, name: n.nameOf(m.To), log: n.log, message: m.Message, tick: n.ticks})
}

// takePart hands the snapshotter a part of a snapshot, where the engine would take the
// message that it belongs to.
func (n *Node) receivePart(m *peerMessage) {
	if n.log == nil || !n.admit(m) {
		return
	}
	c := n.core
	b := c.node.BasicStatus()
	if m.GetTerm() < b.GetTerm() {
		return
	}
	if m.GetSnapshot().GetMetadata().GetIndex() <= b.GetCommit() {
		err := c.Step(m.id, m.Message) // the engine answers that it has all of it
		if err == nil {
			n.snapshotter.sendReceipt(m.name, &receipt{transfer: m.part.transfer, received: m.part.size, state: receiptComplete})
		}
		n.logIgnored(m, err)
		return
	}
	if err := c.checkMessage(m.id, m.Message); err != nil {
		n.logIgnored(m, err)
		return
	}
	n.snapshotter.put(job{id: m.id, name: m.name, log: n.log, part: m.part})
}

// arrived hands the engine the message of a snapshot that has arrived. Its effects are
// carried out in the same turn.
func (n *Node) stepSnapshot(a *incomingSnapshot) {
	n.finishIncoming() // there is none
	if n.core.err != nil {
		return
	}
	n.incomingSnapshot = a
	if err := n.core.Step(a.from, a.message); err != nil {
		n.incomingSnapshot = nil
		n.snapshotter.put(job{finished: a, refusal: err})
	}
}

// install makes a leader's snapshot, which has arrived, the newest of the log.
func (n *Node) install(s *pb.Snapshot) (state preparedState, err error) {
	a := n.incomingSnapshot
	if at := s.GetMetadata(); a == nil || a.index() != at.GetIndex() || a.head.GetMetadata().GetTerm() != at.GetTerm() || !bytes.Equal(a.head.GetData(), s.GetData()) {
		return state, fmt.Errorf("%w: it installs a snapshot at %d that has not arrived", ErrEngine, s.GetMetadata().GetIndex())
	}
	if err := a.body.Commit(a.head); err != nil {
		return state, err
	}
	state, a.install = preparedState{a.install, int64(a.size)}, nil
	return state, nil
}

// landArrival tells the snapshotter that an arrival was taken, or that the engine does not
// need it. The engine has passed over one whose message is of an earlier term.
func (n *Node) finishIncoming() {
	if a := n.incomingSnapshot; a != nil {
		n.incomingSnapshot = nil
		n.snapshotter.put(job{finished: a, skipped: n.core.node.BasicStatus().GetCommit() < a.index()})
	}
}

// ignore logs that a message was refused, if so.
func (n *Node) logIgnored(m *peerMessage, err error) {
	if errors.Is(err, ErrMessage) && !errors.Is(err, errNonMember) {
		n.rateLimits.log(n, "message "+m.name, func() {
			n.logger.Warn("raft: a message is ignored", slog.String("peer", m.name), slog.Any("error", err))
		})
	}
}

// sending is a snapshot on its way to a follower. Until it is there, and the entries
// behind it, they are kept.
type followerSnapshot struct {
	index uint64
	until int64 // tick when they have come; 0: the snapshot itself has not
}

const heldTimeouts = 2 // election timeouts in which a follower that has a snapshot gets the entries behind it

// ReportSnapshot tells the engine what became of a snapshot that it has sent.
func (c *Core) ReportSnapshot(to uint64, ok bool) {
	if c.err != nil {
		return
	}
	defer c.recoverPanic(new(error))
	s, sends := c.snapshots[to]
	if !ok {
		delete(c.snapshots, to)
		c.node.ReportSnapshot(to, raft.SnapshotFailure)
		return
	}
	if sends {
		s.until = c.tick + int64(heldTimeouts*c.config.ElectionTicks)
		c.snapshots[to] = s
	}
	c.node.ReportSnapshot(to, raft.SnapshotFinish)
}

// prepareState reads all of a state.
func prepareState(machine StateMachine, r io.Reader) (install func(), err error) {
	if install, err = machine.Prepare(r); err != nil {
		return nil, err
	}
	if n, err := io.Copy(io.Discard, r); n > 0 || err != nil {
		return nil, errors.Join(fmt.Errorf("raft: %d bytes follow the state", n), err)
	}
	return install, nil
}

// openStored opens the state of the snapshot that a log held when it was opened.
func openStored(s *wal.Stored) (io.ReadCloser, error) {
	if s.BodySize >= 0 {
		if body, err := s.OpenBody(); !errors.Is(err, os.ErrNotExist) {
			return body, err
		}
	}
	_, state, err := readSnapshot(s.Snapshot.GetData())
	return io.NopCloser(bytes.NewReader(state)), err
}
