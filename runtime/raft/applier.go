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
// that wait for them, and takes snapshots. It has its own goroutine, so that slow user
// code does not delay the node's messages to its peers.
type applier struct {
	node      *Node
	machine   StateMachine
	noteMaker noteMaker // the state machine, or nil if it makes no notes
	notes     fsm.Notes // notes of the node that the core knows
	wake      chan struct{}
	ended     chan struct{} // closed when the goroutine has ended

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
	k.noteMaker, _ = machine.(noteMaker)
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
func (a *applier) install(s *pb.Snapshot, state func(), groupID uint64) error {
	at, machine, err := positionOf(s, groupID)
	if err != nil {
		return err
	}
	if state == nil {
		if state, err = prepareState(a.machine, bytes.NewReader(machine)); err != nil {
			return err
		}
	}
	state()
	a.position = at
	if err := a.setMembers(); err != nil {
		return err
	}
	a.setApplied(at.index)
	return nil
}

// put queues committed entries, and the reads that follow them.
func (a *applier) put(e *Effects, state preparedState) {
	if e.Snapshot == nil && len(e.Apply) == 0 && len(e.Reads) == 0 {
		return
	}
	a.busy.Store(true)
	a.mu.Lock()
	if e.Snapshot != nil {
		a.tasks = append(a.tasks, task{install: e.Snapshot, state: state.install, size: state.size, log: a.node.log, groupID: a.node.core.groupID})
	}
	bytes := 0
	for _, o := range e.Apply {
		a.tasks = append(a.tasks, task{Committed: o})
		bytes += len(o.Data)
	}
	for _, w := range e.Reads {
		a.tasks = append(a.tasks, task{read: w})
	}
	a.mu.Unlock()
	a.bytes.Add(int64(bytes))
	a.wakeUp()
}

// requestSnapshot queues a task that takes a snapshot.
func (a *applier) requestSnapshot(log wal.Log) {
	a.mu.Lock()
	a.tasks = append(a.tasks, task{snapshotLog: log})
	a.mu.Unlock()
	a.wakeUp()
}

func (a *applier) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// errGoexit ends a node if user code ended the goroutine of the applier or the
// snapshotter.
var errGoexit = errors.New("a method of the state or of an update, such as Update or Freeze, ended its goroutine (runtime.Goexit, perhaps by t.FailNow)")

// run is the applier's goroutine. If the user's code ends the goroutine, the node stops,
// and another goroutine answers the callers that wait.
func (a *applier) run() {
	ended := false
	defer func() {
		if ended {
			close(a.ended)
			return
		}
		err := fmt.Errorf("raft: after entry %d: %w", a.position.index, errGoexit)
		a.node.fail(err)
		a.close(err)
		go a.run()
	}()
	for range a.wake {
		for a.runOnce() {
		}
		a.busy.Store(false)
		if a.closed() != nil {
			break
		}
	}
	ended = true
}

// close stops the applier from starting further tasks. Reads that wait end with err.
func (a *applier) close(err error) {
	a.mu.Lock()
	if a.err == nil {
		a.err = err
	}
	a.mu.Unlock()
	a.wakeUp()
}

func (a *applier) closed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// runOnce does the tasks that wait. It reports whether there were any.
func (a *applier) runOnce() bool {
	a.mu.Lock()
	list := a.tasks
	a.tasks = a.spare[:0]
	a.mu.Unlock()
	done := 0
	defer func() {
		if done < len(list) { // a task has ended the goroutine: another goroutine continues with the next task
			a.mu.Lock()
			a.tasks = slices.Concat(list[done+1:], a.tasks)
			a.spare = nil
			a.mu.Unlock()
		}
	}()
	for ; done < len(list); done++ {
		t := &list[done]
		if err := a.closed(); err != nil {
			if t.read != nil {
				t.read.Done(fsm.Applied{Err: stopped(err)})
			}
			continue
		}
		if err := a.do(t); err != nil {
			a.node.fail(err)
			a.close(err)
		}
	}
	clear(list)
	a.spare = list
	if len(list) > 0 {
		a.node.stateChanged()
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
	a := n.applier
	w := indexWaiter{index, make(chan struct{})}
	a.mu.Lock()
	if a.applied.Load() >= index {
		a.mu.Unlock()
		return nil
	}
	a.indexWaiters = append(a.indexWaiters, w)
	a.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-n.done:
		return stopped(n.err)
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.indexWaiters = slices.DeleteFunc(a.indexWaiters, func(o indexWaiter) bool { return o.done == w.done })
	return fmt.Errorf("raft: entry %d is not applied here yet: %w", index, ctx.Err())
}

// setApplied sets the index up to which the log is applied, and wakes the callers that
// wait for it.
func (a *applier) setApplied(index uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applied.Store(index)
	a.indexWaiters = slices.DeleteFunc(a.indexWaiters, func(w indexWaiter) bool {
		if w.index > index {
			return false
		}
		close(w.done)
		return true
	})
}

// do runs a task.
func (a *applier) do(t *task) error {
	switch {
	case t.read != nil:
		t.read.Done(fsm.Applied{})
	case t.snapshotLog != nil:
		a.snapshot(t.snapshotLog)
	case t.checkpoint != nil:
		t.checkpoint()
	case t.install != nil:
		a.node.state.Lock()
		err := a.install(t.install, t.state, t.groupID)
		a.checkpoint(t.log, t.install.GetMetadata().GetIndex(), t.size)
		a.node.state.Unlock()
		if err != nil {
			return fmt.Errorf("raft: the leader's snapshot at %d: %w", t.install.GetMetadata().GetIndex(), err)
		}
	default:
		return a.apply(&t.Committed)
	}
	return nil
}

// apply applies an entry, and answers the callers that wait for it.
func (a *applier) apply(o *Committed) error {
	if len(o.Data) > 0 {
		a.results = a.results[:0]
		if err := a.applyEntry(o); err != nil {
			return fmt.Errorf("raft: entry %d: %w", o.Index, err)
		}
		a.bytes.Add(-int64(len(o.Data)))
	}
	a.position.index, a.position.term = o.Index, o.Term
	if o.Membership != nil {
		a.position.membership = *o.Membership
		if err := a.setMembers(); err != nil {
			return fmt.Errorf("raft: entry %d: %w", o.Index, err)
		}
	}
	hasWork := a.updateNotes()
	a.setApplied(o.Index)
	if len(a.results) > 0 {
		hasWork = a.node.core.Results(a.results) || hasWork
		clear(a.results)
		a.results = a.results[:0]
	}
	if hasWork {
		a.node.wakeUp()
	}
	return nil
}

// applyEntry passes an entry to the state machine. The deferred unlock lets others read
// the state even if Update ends the goroutine.
func (a *applier) applyEntry(o *Committed) error {
	a.node.state.Lock()
	defer a.node.state.Unlock()
	return a.machine.Apply(o.Index, o.Term, o.Data, a.result)
}

func (a *applier) result(client, sequence uint64, r fsm.Applied) {
	a.results = append(a.results, Result{client, sequence, r})
}

// snapshot writes a snapshot of the state. The snapshotter writes a frozen state while
// the applier continues. The applier itself writes a state that is not frozen. During
// this time the state can be read but not changed. The snapshotter verifies both.
func (a *applier) snapshot(log wal.Log) {
	write, frozen, err := a.freeze()
	t := &snapshotWrite{log: log, write: write, err: err, head: &pb.Snapshot{
		Data:     appendHead(nil, head{members: a.position.members, groupID: a.position.groupID}),
		Metadata: &pb.SnapshotMetadata{Index: new(a.position.index), Term: new(a.position.term), ConfState: a.position.conf},
	}}
	if !frozen {
		a.node.state.RLock()
		t.run()
		a.node.state.RUnlock()
	}
	if !a.node.snapshotter.put(job{write: t}) { // the node stops
		t.abort()
	}
}

// freeze gets the function that writes the state from the state machine.
func (a *applier) freeze() (write func(io.Writer) error, frozen bool, err error) {
	a.node.state.Lock()
	defer a.node.state.Unlock()
	return a.machine.Snapshot()
}

// snapshotWrite is a snapshot that is being written.
type snapshotWrite struct {
	log   wal.Log
	head  *pb.Snapshot
	write func(io.Writer) error // nil: the body is written
	body  wal.SnapshotWriter
	size  int64
	err   error
}

// run writes the body.
func (w *snapshotWrite) run() {
	if w.err == nil {
		w.body, w.err = w.log.CreateSnapshot()
	}
	if w.err == nil {
		w.err = w.write(w)
	}
	w.write = nil // so that the memory of a frozen state can be freed
}

// complete writes the body, if it is not written yet, decodes it, and makes it durable.
// The entries that the snapshot covers are removed later, so a snapshot that cannot be
// decoded would make the state unreadable.
func (w *snapshotWrite) complete(machine StateMachine) {
	if w.write != nil {
		w.run()
	}
	if w.err == nil {
		w.err = w.verify(machine)
	}
	if w.err == nil {
		w.err = w.body.Seal(w.head)
	}
	if w.err != nil {
		w.err = fmt.Errorf("raft: a snapshot at %d: %w", w.index(), w.err)
	}
}

// verify decodes the body.
func (w *snapshotWrite) verify(machine StateMachine) error {
	body, err := w.body.Body()
	if err != nil {
		return err
	}
	return errors.Join(machine.Verify(body), body.Close())
}

// Write writes a piece of the body.
func (w *snapshotWrite) Write(b []byte) (int, error) {
	n, err := w.body.Write(b)
	w.size += int64(n)
	return n, err
}

func (w *snapshotWrite) index() uint64 { return w.head.GetMetadata().GetIndex() }

// abort removes the snapshot, unless it was committed.
func (w *snapshotWrite) abort() {
	if w.body != nil {
		_ = w.body.Abort() // the next start removes the file
	}
}

// snapshotSaved queues a task that calls checkpoint for a saved snapshot.
func (a *applier) snapshotSaved(log wal.Log, index uint64, size int64) {
	a.mu.Lock()
	a.tasks = append(a.tasks, task{checkpoint: func() { a.checkpoint(log, index, size) }})
	a.mu.Unlock()
	a.wakeUp()
}

// checkpoint passes a function to the state machine that opens a snapshot for reading.
func (a *applier) checkpoint(log wal.Log, index uint64, size int64) {
	a.machine.Checkpoint(index, size, func() (io.ReadCloser, error) {
		body, _, err := openBody(log, index)
		return body, err
	})
}
