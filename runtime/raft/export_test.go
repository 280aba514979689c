package raft

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"slices"
	"strings"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/fsm"
)

// The simulation runs the loops of a node itself, instead of in goroutines.

// Complete does the checks of New and Start.
func (c Config) Complete() error {
	if err := c.check(); err != nil {
		return err
	}
	return c.checkHost()
}

// NewNode is StartNode without goroutines. The caller must call Begin.
func NewNode(c NodeConfig) (*Node, error) { return newNode(c) }

func (n *Node) Begin()               { n.begin() }
func (n *Node) Turn(tick bool) error { return n.runOnce(tick) }
func (n *Node) Release()             { n.releaseHeld() }
func (n *Node) End(err error)        { n.shutDown(err) }
func (n *Node) Core() *Core          { return n.core }
func (n *Node) ApplierTurn() bool    { return n.applier.runOnce() }
func (n *Node) Applied() uint64      { return n.applier.applied.Load() }

// Woken reports whether the node's loop was woken since the last call.
func (n *Node) Woken() bool { return drain(n.wake) }

// ApplierWoken reports whether the applier was woken since the last call.
func (n *Node) ApplierWoken() bool { return drain(n.applier.wake) }

// SnapshotterTurn does the waiting jobs of the snapshotter.
func (n *Node) SnapshotterTurn() bool { return n.snapshotter.runOnce() }

// SnapshotterWoken reports whether the snapshotter was woken since the last call.
func (n *Node) SnapshotterWoken() bool { return drain(n.snapshotter.wake) }

// RefuseSnapshots makes the node refuse snapshots from other nodes with err. nil accepts them.
func (n *Node) RefuseSnapshots(err error) {
	n.snapshotter.machine = refusing{n.snapshotter.machine, err}
}

type refusing struct {
	StateMachine
	err error
}

func (r refusing) Prepare(b io.Reader) (func(), error) {
	if r.err != nil {
		return nil, r.err
	}
	return r.StateMachine.Prepare(b)
}

// MarkSnapshotterBusy makes the node pass ticks to its snapshotter, as if it were writing a state.
func (n *Node) MarkSnapshotterBusy() { n.snapshotter.active.Store(true) }

// HasSnapshotToSend reports whether a job to send a snapshot waits for the snapshotter.
func (n *Node) HasSnapshotToSend() bool {
	return slices.ContainsFunc(n.snapshotter.jobs, func(e job) bool { return e.message != nil })
}

// BeforeDecode sets a function that is called before the snapshotter decodes a state.
func (n *Node) BeforeDecode(before func()) {
	n.snapshotter.machine = decoding{n.snapshotter.machine, before}
}

type decoding struct {
	StateMachine
	before func()
}

func (d decoding) Prepare(b io.Reader) (func(), error) {
	d.before()
	return d.StateMachine.Prepare(b)
}

// SetPartBytes sets the size of the parts in which snapshots are sent.
func (n *Node) SetPartBytes(bytes int) { n.snapshotter.partBytes = bytes }

func drain(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// InboxProposal is a proposal in the inbox of a node.
type InboxProposal struct {
	Waiter
	node   *Node
	number uint64
}

func (a *InboxProposal) proposed(number uint64) { a.number = number }

// PutProposal puts a proposal into the inbox, as Machine.Propose does.
func (n *Node) PutProposal(kind Kind, data []byte, w Waiter) *InboxProposal {
	a := &InboxProposal{Waiter: w, node: n}
	if err := n.put(func(b *inbox) { b.proposals = append(b.proposals, proposal{kind, data, a}) }); err != nil {
		a.Done(fsm.Applied{Err: err})
	}
	return a
}

// Abandon abandons the proposal, as Machine.Propose does when its context ends.
func (a *InboxProposal) Abandon() { a.node.Do(func(c *Core) { c.Abandon(a.number, a) }) }

// PutRead puts a read into the inbox.
func (n *Node) PutRead(w Waiter, lease bool) {
	if err := n.put(func(b *inbox) { b.reads = append(b.reads, pendingRead{w, lease}) }); err != nil {
		w.Done(fsm.Applied{Err: err})
	}
}

// Do makes the node's loop call a function.
func (n *Node) Do(call func(*Core)) { _ = n.put(func(b *inbox) { b.calls = append(b.calls, call) }) }

// TrySnapshot makes the applier take a snapshot.
func (n *Node) TrySnapshot() { n.Do(func(*Core) { n.takeSnapshot() }) }

// SnapshotError returns the error of the last snapshot. The caller must be in the node's loop.
func (n *Node) SnapshotError() string { return n.snapshotError }

// DropInbox drops the received messages.
func (n *Node) DropInbox() {
	n.inbox.mu.Lock()
	defer n.inbox.mu.Unlock()
	n.inbox.messages, n.inbox.bytes = nil, 0
}

// Payload returns the content of an envelope, and whether it is a message of the engine.
func Payload(b []byte) (payload []byte, ofEngine bool, err error) {
	e, payload, err := openEnvelope(b)
	return payload, e.kind == kindRaft, err
}

// Describe describes a message that is not of the engine, for the transcripts: introductions,
// notices, and the parts and receipts of snapshots.
func Describe(b []byte) string {
	e, payload, _ := openEnvelope(b)
	switch e.kind {
	case kindPart:
		p, _ := readPart(payload)
		what := "all of"
		if uint64(len(p.data)) < p.size {
			what = fmt.Sprintf("bytes %d..%d of %d of", p.offset, p.offset+uint64(len(p.data)), p.size)
		}
		return fmt.Sprintf("Snap term %d, %s snapshot %d", p.message.GetTerm(), what, p.message.GetSnapshot().GetMetadata().GetIndex())
	case kindReceipt:
		r, _ := readReceipt(payload)
		return "SnapReceipt" + []string{"", ", complete", ", unknown", ", refused: " + r.reason}[r.state]
	}
	if e.kind == kindNotice {
		n, _ := readNotice(payload)
		if n.reason == notGroup {
			return "Notice: another group"
		}
		return fmt.Sprintf("Notice: not a member at %d", n.index)
	}
	i, _ := readIntroduction(payload)
	text := "Introduction"
	if i.answerTo != 0 {
		text += ", answers"
	}
	if i.question != 0 {
		text += ", asks"
	}
	if i.joins {
		text += ", is to join"
	}
	if e.groupID == 0 {
		return text
	}
	var names []string
	for _, m := range i.members {
		names = append(names, m.Name)
	}
	text += fmt.Sprintf(", has a group of %s at %d", strings.Join(names, " "), i.index)
	if len(i.firstMembers) > 0 && i.index == bootstrapIndex {
		text += ", just founded"
	}
	return text
}

// Change starts changes of the members, as ChangeMembers does.
func (n *Node) Change(changes []Change, w Waiter) {
	n.Do(func(*Core) { n.changeMembers(changes, 0, func() bool { return true }, w) })
}

// AbandonChange removes the waiter of a change.
func (n *Node) AbandonChange(w Waiter) { n.Do(func(*Core) { n.abandonChange(w) }) }

// NotMember returns the notice that a node is not a member, in an envelope.
func NotMember(groupID, id, index uint64) []byte {
	return notice{notMember, index}.append(envelope{kindNotice, groupID, id}.append(nil))
}

// StatusNow returns the status without the node's loop.
func (n *Node) StatusNow() Status { return *n.currentStatus() }

// GroupID returns the identity of the node's group, or 0 if it does not have a group yet.
func (n *Node) GroupID() uint64 { return n.core.groupID }

// ChangesAhead reports whether a change of the members is in progress, or is in the log and not
// applied yet.
func (c *Core) ChangesAhead() bool {
	for _, e := range c.memory.entries {
		if e.GetIndex() > c.applied && e.GetType() != pb.EntryNormal {
			return true
		}
	}
	return len(c.conf.GetVotersOutgoing()) > 0
}

// Members returns the members by their ids. The caller must not change them.
func (c *Core) Members() map[uint64]Member { return c.members }

// CheckMembers returns an error if the members, the configuration and the engine's configuration differ from each
// other, or from the newest snapshot although no change came after it.
func (c *Core) CheckMembers() error {
	if len(c.members) == 0 {
		return nil
	}
	if got, want := c.node.Status().Config.Voters.String(), (quorum.JointConfig{majority(c.conf.GetVoters()), majority(c.conf.GetVotersOutgoing())}).String(); got != want {
		return fmt.Errorf("the engine counts the votes of %s, want %s", got, want)
	}
	inConf := majority(slices.Concat(c.conf.GetVoters(), c.conf.GetVotersOutgoing(), c.conf.GetLearners(), c.conf.GetLearnersNext()))
	for id, m := range c.members {
		if _, ok := inConf[id]; !ok || m.ID != id {
			return fmt.Errorf("%+v is a member and not in the configuration %v", m, c.conf)
		}
	}
	if len(inConf) != len(c.members) {
		return fmt.Errorf("the configuration %v must have the members %v", c.conf, c.members)
	}
	s := c.memory.snapshot
	h, _, err := readSnapshot(s.GetData())
	if err != nil || c.memory.membersIndex > s.GetMetadata().GetIndex() {
		return err
	}
	restored := members{}
	restored.apply(h.members, s.GetMetadata().GetConfState())
	if got, want := fmt.Sprint(restored.list()), fmt.Sprint(c.members.list()); got != want {
		return fmt.Errorf("the snapshot at %d has the members %s, want %s", s.GetMetadata().GetIndex(), got, want)
	}
	return nil
}

func majority(ids []uint64) quorum.MajorityConfig {
	m := quorum.MajorityConfig{}
	for _, id := range ids {
		m[id] = struct{}{}
	}
	return m
}

// Snapshot returns a copy of the newest snapshot.
func (c *Core) Snapshot() *pb.Snapshot { return proto.CloneOf(c.memory.snapshot) }

// Prefer sets the preferred leader.
func (n *Node) Prefer(name string) { n.config.Prefer = name }

// PassBytesMax is the number of bytes that a follower forwards without an answer.
const PassBytesMax = passBytesMax

// RecoveringSuffix is the suffix of a folder that FoundInPlace has not renamed yet.
const RecoveringSuffix = recoveringSuffix

// LogTo makes the node log to h.
func (n *Node) LogTo(h slog.Handler) { n.logger = slog.New(h) }

// SnapshotWaiters returns the number of callers that wait for a snapshot.
func SnapshotWaiters[S, U, R any](m *Machine[S, U, R]) (n int) {
	node := m.current.Load()
	_ = node.do(context.Background(), func(*Core) { n = len(node.snapshotWaiters) })
	return n
}
