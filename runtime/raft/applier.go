package raft

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// applier applies committed entries to the state machine of a node, answers the callers
// that wait for them, and takes snapshots. It has its own goroutine, so that user code,
// however slow, does not delay the node's messages to its peers.
type applier struct {
	node    *Node
	machine StateMachine
	noting  noting    // the state machine, or nil if it makes no notes
	notes   fsm.Notes // notes of the node that the core knows
	wake    chan struct{}
	ended   chan struct{} // closed when the goroutine has ended

	mu           sync.Mutex
	tasks        []task
	spare        []task
	err          error // set when no more tasks may begin
	indexWaiters []indexWaiter

	busy     atomic.Bool  // there are tasks
	bytes    atomic.Int64 // bytes of entries that wait
	applied  atomic.Uint64
	position logPosition // place in the log of the state machine's state
	results  []Result
}

// preparedState is a decoded state of a snapshot.
type preparedState struct {
	install func() // nil: the state is in the data of the snapshot
	size    int64
}

// task is one of five kinds: apply an entry, install a snapshot of the leader, answer a
// read, take a snapshot, or call checkpoint.
type task struct {
	Committed
	install     *pb.Snapshot
	state       func() // installs the state of the snapshot; nil: the state is in its data
	groupID     uint64 // of the group of the snapshot in install
	read        Waiter
	snapshotLog wal.Log // the log for a new snapshot
	log         wal.Log // the log that holds the snapshot in install
	size        int64   // bytes of the state in install
	checkpoint  func()
}

// logPosition is a place in the log, with the members of the group at that place.
type logPosition struct {
	groupID     uint64
	index, term uint64
	membership
}

func positionOf(s *pb.Snapshot, groupID uint64) (p logPosition, machine []byte, err error) {
	p.groupID, p.index, p.term, p.conf = groupID, s.GetMetadata().GetIndex(), s.GetMetadata().GetTerm(), s.GetMetadata().GetConfState()
	h, machine, err := readSnapshot(s.GetData())
	p.members = h.members
	return p, machine, err
}

func newApplier(n *Node, machine StateMachine) *applier {
	k := &applier{node: n, machine: machine, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	k.noting, _ = machine.(noting)
	return k
}

// restore loads the snapshot that the log held when it was opened.
func (n *Node) restore(s *wal.Stored, groupID uint64) error {
	body, err := openStored(s)
	if err != nil {
		return err
	}
	install, err := prepareState(n.config.Machine, body)
	if err := errors.Join(err, body.Close()); err != nil {
		return err
	}
	if err := n.applier.install(s.Snapshot, install, groupID); err != nil {
		return err
	}
	n.applier.checkpoint(n.log, n.applier.position.index, max(s.BodySize, int64(len(s.Snapshot.GetData()))))
	return nil
}

// install installs a snapshot of a group.
func (k *applier) install(s *pb.Snapshot, state func(), groupID uint64) error {
	at, machine, err := positionOf(s, groupID)
	if err != nil {
		return err
	}
	if state == nil {
		if state, err = prepareState(k.machine, bytes.NewReader(machine)); err != nil {
			return err
		}
	}
	state()
	k.position = at
	if err := k.setMembers(); err != nil {
		return err
	}
	k.setApplied(at.index)
	return nil
}

// put queues committed entries, and the reads that follow them.
func (k *applier) put(e *Effects, state preparedState) {
	if e.Snapshot == nil && len(e.Apply) == 0 && len(e.Reads) == 0 {
		return
	}
	k.busy.Store(true)
	k.mu.Lock()
	if e.Snapshot != nil {
		k.tasks = append(k.tasks, task{install: e.Snapshot, state: state.install, size: state.size, log: k.node.log, groupID: k.node.core.groupID})
	}
	bytes := 0
	for _, o := range e.Apply {
		k.tasks = append(k.tasks, task{Committed: o})
		bytes += len(o.Data)
	}
	for _, w := range e.Reads {
		k.tasks = append(k.tasks, task{read: w})
	}
	k.mu.Unlock()
	k.bytes.Add(int64(bytes))
	k.wakeUp()
}

// requestSnapshot queues a task that takes a snapshot.
func (k *applier) requestSnapshot(log wal.Log) {
	k.mu.Lock()
	k.tasks = append(k.tasks, task{snapshotLog: log})
	k.mu.Unlock()
	k.wakeUp()
}

func (k *applier) wakeUp() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// errGoexit ends a node if user code ended the goroutine of the applier or the
// snapshotter.
var errGoexit = errors.New("a method of the state or of an update, such as Update or Freeze, ended its goroutine (runtime.Goexit, perhaps by t.FailNow)")

// run is the applier's goroutine. If the user's code ends the goroutine, the node stops,
// and another goroutine answers the callers that wait.
func (k *applier) run() {
	ended := false
	defer func() {
		if ended {
			close(k.ended)
			return
		}
		err := fmt.Errorf("raft: after entry %d: %w", k.position.index, errGoexit)
		k.node.fail(err)
		k.close(err)
		go k.run()
	}()
	for range k.wake {
		for k.runOnce() {
		}
		k.busy.Store(false)
		if k.closed() != nil {
			break
		}
	}
	ended = true
}

// close prevents that further tasks begin. Reads that wait end with err.
func (k *applier) close(err error) {
	k.mu.Lock()
	if k.err == nil {
		k.err = err
	}
	k.mu.Unlock()
	k.wakeUp()
}

func (k *applier) closed() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// runOnce does the tasks that wait. It reports whether there were any.
func (k *applier) runOnce() bool {
	k.mu.Lock()
	list := k.tasks
	k.tasks = k.spare[:0]
	k.mu.Unlock()
	done := 0
	defer func() {
		if done < len(list) { // run is ending, and another goroutine continues after the task that ended it
			k.mu.Lock()
			k.tasks = slices.Concat(list[done+1:], k.tasks)
			k.spare = nil
			k.mu.Unlock()
		}
	}()
	for ; done < len(list); done++ {
		t := &list[done]
		if err := k.closed(); err != nil {
			if t.read != nil {
				t.read.Done(fsm.Applied{Err: stopped(err)})
			}
			continue
		}
		if err := k.do(t); err != nil {
			k.node.fail(err)
			k.close(err)
		}
	}
	clear(list)
	k.spare = list
	if len(list) > 0 {
		k.node.stateChanged()
	}
	return len(list) > 0
}

// indexWaiter is a caller that waits until the log is applied up to an index.
type indexWaiter struct {
	index uint64
	done  chan struct{}
}

// wait waits until the state machine has applied the log up to an index.
func (n *Node) wait(ctx context.Context, index uint64) error {
	if err := n.readSlots.take(ctx, n); err != nil {
		return err
	}
	defer n.readSlots.give()
	k := n.applier
	w := indexWaiter{index, make(chan struct{})}
	k.mu.Lock()
	if k.applied.Load() >= index {
		k.mu.Unlock()
		return nil
	}
	k.indexWaiters = append(k.indexWaiters, w)
	k.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-n.done:
		return stopped(n.err)
	case <-ctx.Done():
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.indexWaiters = slices.DeleteFunc(k.indexWaiters, func(o indexWaiter) bool { return o.done == w.done })
	return fmt.Errorf("raft: entry %d is not applied here yet: %w", index, ctx.Err())
}

// setApplied sets the index up to which the log is applied, and wakes the callers that
// wait for it.
func (k *applier) setApplied(index uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.applied.Store(index)
	k.indexWaiters = slices.DeleteFunc(k.indexWaiters, func(w indexWaiter) bool {
		if w.index > index {
			return false
		}
		close(w.done)
		return true
	})
}

// do runs a task.
func (k *applier) do(t *task) error {
	switch {
	case t.read != nil:
		t.read.Done(fsm.Applied{})
	case t.snapshotLog != nil:
		k.snapshot(t.snapshotLog)
	case t.checkpoint != nil:
		t.checkpoint()
	case t.install != nil:
		k.node.state.Lock()
		err := k.install(t.install, t.state, t.groupID)
		k.checkpoint(t.log, t.install.GetMetadata().GetIndex(), t.size)
		k.node.state.Unlock()
		if err != nil {
			return fmt.Errorf("raft: the leader's snapshot at %d: %w", t.install.GetMetadata().GetIndex(), err)
		}
	default:
		return k.apply(&t.Committed)
	}
	return nil
}

// apply applies an entry, and answers the callers that wait for it.
func (k *applier) apply(o *Committed) error {
	if len(o.Data) > 0 {
		k.results = k.results[:0]
		if err := k.applyEntry(o); err != nil {
			return fmt.Errorf("raft: entry %d: %w", o.Index, err)
		}
		k.bytes.Add(-int64(len(o.Data)))
	}
	k.position.index, k.position.term = o.Index, o.Term
	if o.Membership != nil {
		k.position.membership = *o.Membership
		if err := k.setMembers(); err != nil {
			return fmt.Errorf("raft: entry %d: %w", o.Index, err)
		}
	}
	stirred := k.updateNotes()
	k.setApplied(o.Index)
	if len(k.results) > 0 {
		stirred = k.node.core.Results(k.results) || stirred
		clear(k.results)
		k.results = k.results[:0]
	}
	if stirred {
		k.node.wakeUp()
	}
	return nil
}

// applyEntry passes an entry to the state machine. The deferred unlock lets others read
// the state even if Update ends the goroutine.
func (k *applier) applyEntry(o *Committed) error {
	k.node.state.Lock()
	defer k.node.state.Unlock()
	return k.machine.Apply(o.Index, o.Term, o.Data, k.result)
}

func (k *applier) result(client, sequence uint64, a fsm.Applied) {
	k.results = append(k.results, Result{client, sequence, a})
}

// snapshot writes a snapshot of the state. The snapshotter writes a frozen state, while
// the applier goes on. The applier writes a state that is not frozen; in that time the
// state can be read.
func (k *applier) snapshot(log wal.Log) {
	write, frozen, err := k.freeze()
	t := &snapshotWrite{log: log, write: write, err: err, head: &pb.Snapshot{
		Data:     appendHead(nil, head{members: k.position.members, groupID: k.position.groupID}),
		Metadata: &pb.SnapshotMetadata{Index: new(k.position.index), Term: new(k.position.term), ConfState: k.position.conf},
	}}
	if frozen && err == nil {
		k.node.snapshotter.put(job{write: t})
		return
	}
	k.node.state.RLock()
	t.run()
	k.node.state.RUnlock()
	k.node.finishSnapshot(t)
}

// freeze gets the function that writes the state from the state machine.
func (k *applier) freeze() (write func(io.Writer) error, frozen bool, err error) {
	k.node.state.Lock()
	defer k.node.state.Unlock()
	return k.machine.Snapshot()
}

// snapshotWrite is a snapshot that is being written.
type snapshotWrite struct {
	log   wal.Log
	head  *pb.Snapshot
	write func(io.Writer) error
	body  wal.SnapshotWriter
	size  int64
	err   error
}

// run writes the snapshot.
func (t *snapshotWrite) run() {
	if t.err == nil {
		t.body, t.err = t.log.CreateSnapshot()
	}
	if t.err == nil {
		t.err = t.write(t)
	}
	if t.err == nil {
		t.err = t.body.Seal(t.head)
	}
	t.write = nil // lets a frozen state be freed
	if t.err != nil {
		t.err = fmt.Errorf("raft: a snapshot at %d: %w", t.index(), t.err)
	}
}

// Write writes a piece of the body.
func (t *snapshotWrite) Write(b []byte) (int, error) {
	n, err := t.body.Write(b)
	t.size += int64(n)
	return n, err
}

func (t *snapshotWrite) index() uint64 { return t.head.GetMetadata().GetIndex() }

// abort removes the snapshot, unless it was committed.
func (t *snapshotWrite) abort() {
	if t.body != nil {
		_ = t.body.Abort() // the next start removes the file
	}
}

// snapshotSaved queues a task that tells the state machine about a saved snapshot.
func (k *applier) snapshotSaved(log wal.Log, index uint64, size int64) {
	k.mu.Lock()
	k.tasks = append(k.tasks, task{checkpoint: func() { k.checkpoint(log, index, size) }})
	k.mu.Unlock()
	k.wakeUp()
}

// checkpoint tells the state machine where it can read a snapshot again.
func (k *applier) checkpoint(log wal.Log, index uint64, size int64) {
	k.machine.Checkpoint(index, size, func() (io.ReadCloser, error) {
		body, _, err := openBody(log, index)
		return body, err
	})
}
