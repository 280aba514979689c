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

// The node's loop handles the heads of snapshots. The snapshotter handles their bodies.

// sendSnapshot passes a snapshot to the snapshotter, which sends it.
func (n *Node) sendSnapshot(m Message) {
	n.snapshotter.put(job{id: m.To, name: n.nameOf(m.To), log: n.log, message: m.Message, tick: n.ticks})
}

// receivePart passes a part of a snapshot to the snapshotter, if the engine would accept
// the message of the snapshot.
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
		err := c.Step(m.id, m.Message) // the engine answers that it already has these entries
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

// stepSnapshot passes the message of a complete snapshot to the engine. Its effects are
// carried out in the same iteration of the loop.
func (n *Node) stepSnapshot(a *incomingSnapshot) {
	n.finishIncoming() // normally there is none
	if n.core.err != nil {
		return
	}
	n.incomingSnapshot = a
	if err := n.core.Step(a.from, a.message); err != nil {
		n.incomingSnapshot = nil
		n.snapshotter.put(job{finished: a, refusal: err})
	}
}

// install commits a received snapshot of the leader as the newest one of the log.
func (n *Node) install(s *pb.Snapshot) (state preparedState, err error) {
	a := n.incomingSnapshot
	if at := s.GetMetadata(); a == nil || a.index() != at.GetIndex() || a.head.GetMetadata().GetTerm() != at.GetTerm() || !bytes.Equal(a.head.GetData(), s.GetData()) {
		return state, fmt.Errorf("%w: it installs a snapshot at %d that was not received", ErrEngine, s.GetMetadata().GetIndex())
	}
	if err := a.body.Commit(a.head); err != nil {
		return state, err
	}
	state, a.install = preparedState{a.install, int64(a.size)}, nil
	return state, nil
}

// finishIncoming informs the snapshotter that the engine has handled a snapshot. The
// engine skips a snapshot whose message is of an earlier term.
func (n *Node) finishIncoming() {
	if a := n.incomingSnapshot; a != nil {
		n.incomingSnapshot = nil
		n.snapshotter.put(job{finished: a, skipped: n.core.node.BasicStatus().GetCommit() < a.index()})
	}
}

// logIgnored logs that a message is ignored, if err matches ErrMessage. It does not log
// messages of nodes that are not members.
func (n *Node) logIgnored(m *peerMessage, err error) {
	if errors.Is(err, ErrMessage) && !errors.Is(err, errNonMember) {
		n.rateLimits.log(n, "message "+m.name, func() {
			n.logger.Warn("raft: a message is ignored", slog.String("peer", m.name), slog.Any("error", err))
		})
	}
}

// followerSnapshot is a snapshot that is being sent to a follower. The snapshot, and the
// entries after it, are kept until the follower has them.
type followerSnapshot struct {
	index uint64
	until int64 // tick at which the follower should have the entries; 0: the snapshot is still being sent
}

const heldTimeouts = 2 // election timeouts in which a follower that has a snapshot gets the entries after it

// ReportSnapshot passes the result of a sent snapshot to the engine.
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

// prepareState decodes a state, and checks that no data follow it.
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
