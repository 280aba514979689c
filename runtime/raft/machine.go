package raft

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// Machine is a state machine that is kept on disk or on several nodes: the implementation
// of `kind: fsm` with `log` or `raft`. Any goroutine may call Propose, Read and the other
// methods that have a context. The Receive methods and Answer are for generated code.
type Machine[S, U, R any] struct {
	config     Config
	definition fsm.Definition[S, U, R]
	machine    *fsm.Replicated[S, U, R]
	results    bool // the type of a result has data

	scratches sync.Pool            // of *scratch[U, R]
	current   atomic.Pointer[Node] // node, from Start to Close, so that callers need no lock

	mu      sync.Mutex
	node    *Node        // nil before Start, and under a Stepper
	stepped *steppedNode // nil before Start, and without a Stepper
	leave   func() error
	closed  bool

	inTopology[S, U, R]
	events events[U, R]
}

// engine drives a state machine: a Node, or a steppedNode under a Stepper.
type engine interface {
	newCall() *call
	propose(ctx context.Context, kind Kind, c *call) (fsm.Applied, error)
	proposeAs(ctx context.Context, client, sequence, floor uint64, data []byte) (fsm.Applied, error)
	read(ctx context.Context, lease bool, f func()) error
	view(f func())
	wait(ctx context.Context, index uint64) error
	leader() string
	Status() Status
	ChangeMembers(ctx context.Context, changes ...Change) error
	TransferLeader(ctx context.Context, to string) error
	Snapshot(ctx context.Context) (index uint64, err error)
	Err() error
}

// New makes a state machine, and Start starts it. Start also checks the fields that
// depend on the host, such as the name of the node, the folder and certificates. The
// definition must have codecs for the state, the updates and their results.
func New[S, U, R any](c Config, d fsm.Definition[S, U, R]) (*Machine[S, U, R], error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := d.CheckLogged(); err != nil {
		return nil, err
	}
	m := &Machine[S, U, R]{config: c, definition: d, results: reflect.TypeFor[R]().Size() > 0}
	m.machine = fsm.NewReplicated(d, fsm.Options{Sessions: c.sessions, SessionTTL: c.SessionTTL, NoChecksums: c.NoChecksums})
	if c.Listener != nil {
		m.machine.Listen(c.Listener)
	}
	m.inTopology.m = m
	m.events.logger = m.config.Logger
	return m, nil
}

// Join sets the pool that runs the state machine as a processor. It is called before
// Start, because under a Stepper the state machine can be used before the first step.
func (m *Machine[S, U, R]) Join(host fsm.Host) { m.host = host }

// Start opens the log, restores the state, and begins to exchange messages with the other
// members. host is the pool that runs the state machine as a processor, or nil. Start
// does not wait for a leader. Under a Stepper everything is in memory, and fields that
// depend on the host are not needed.
func (m *Machine[S, U, R]) Start(_ context.Context, host fsm.Host) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return errNodeStopped
	case m.node != nil || m.stepped != nil:
		return errors.New("raft: the state machine was already started")
	}
	m.host, m.events.host = host, host
	if host != nil && host.Stepped() {
		m.stepped = newSteppedNode(cmp.Or(m.config.Node, alone), m.machine, host)
		if m.events.leadership != nil {
			m.events.setLeader(m.stepped.leadership())
		}
		return nil
	}
	c := m.config
	if err := c.checkHost(); err != nil {
		return err
	}
	if m.events.leadership != nil {
		c.onLeader = m.events.setLeader
	}
	node, leave, err := openNode(&c, m.machine)
	if err != nil {
		return err
	}
	m.node, m.leave = node, leave
	m.current.Store(node)
	if host != nil {
		go func() {
			<-node.Done()
			host.Wake() // Answer returns the node's error, which ends the topology
		}()
	}
	return nil
}

// typesOf returns the state machine's description of its types, or "".
func typesOf(machine StateMachine) string {
	if m, ok := machine.(interface{ Description() string }); ok {
		return m.Description()
	}
	return ""
}

// checkTypes returns an error if the program does not know a type or field that the
// entries of the log use. It is called before the entries are applied, because an unknown
// field would be missing in the next snapshot. In a group of several members it checks
// nothing: a member may have described types that not all members know, and the state
// machine checks them.
func checkTypes(types string, stored wal.Stored) error {
	conf := stored.Snapshot.GetMetadata().GetConfState()
	recorded := ""
	for _, e := range stored.Entries {
		if e.GetType() != pb.EntryNormal || len(conf.GetVoters())+len(conf.GetLearners()) > 1 {
			return nil
		}
		if d := fsm.Described(e.Data); d != "" && fsm.Compatible(recorded, d) == nil {
			recorded = d
		}
	}
	if err := fsm.Compatible(recorded, types); err != nil {
		return fmt.Errorf("raft: the log: %w", err)
	}
	return nil
}

// nonce returns a random number that is not 0.
func nonce() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// Close stops the state machine. Requests that wait end with an error. Close returns the
// error that had ended the state machine before, unless Answer has returned it.
func (m *Machine[S, U, R]) Close() error {
	m.mu.Lock()
	node, leave := m.node, m.leave
	closed := m.closed
	m.closed = true
	m.current.Store(nil)
	if m.stepped != nil {
		m.stepped.close()
	}
	m.mu.Unlock()
	if node == nil || closed {
		return nil
	}
	err := node.Close()
	return errors.Join(err, leave())
}

// Err returns why the node has ended while it was in use, or nil. After Err has returned the
// error, Close does not.
func (m *Machine[S, U, R]) Err() error {
	if n := m.current.Load(); n != nil {
		return n.Err()
	}
	return nil
}

// running returns the node, or the reason why it does not run.
func (m *Machine[S, U, R]) running() (*Node, error) {
	if n := m.current.Load(); n != nil {
		return n, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.node == nil:
		return nil, fmt.Errorf("raft: %w", fsm.ErrNotRunning)
	case m.closed:
		return nil, errNodeStopped
	}
	return m.node, nil
}

// engine returns the engine of the state machine, or the reason why there is none.
func (m *Machine[S, U, R]) engine() (engine, error) {
	if n := m.current.Load(); n != nil {
		return n, nil
	}
	m.mu.Lock()
	host, begun := m.host, m.node != nil || m.stepped != nil || m.closed
	m.mu.Unlock()
	if s, ok := host.(fsm.Steps); ok && !begun {
		s.Begin()
	}
	m.mu.Lock()
	stepped := m.stepped
	m.mu.Unlock()
	if stepped != nil {
		return stepped, nil
	}
	n, err := m.running()
	if err != nil {
		return nil, err // not a nil *Node in the interface
	}
	return n, nil
}

// Propose applies an update, and returns the result of its method Update. It waits for a
// leader, a majority and room until ctx ends. The error is the error of the update
// itself, or an error of package fsm. fsm.OutcomeKnown reports whether the outcome of the
// update is known after an error.
func (m *Machine[S, U, R]) Propose(ctx context.Context, u U) (R, error) {
	r, err := m.ProposeResult(ctx, u)
	return r.Value, err
}

// ProposeResult is like Propose, and also returns the update's place in the log. The
// error is also in the result.
func (m *Machine[S, U, R]) ProposeResult(ctx context.Context, u U) (fsm.Result[R], error) {
	e, err := m.engine()
	if err != nil {
		return m.result(fsm.Applied{Err: err})
	}
	c := e.newCall()
	if c.data, err = m.encode(c.data[:0], u); err != nil {
		c.release()
		return m.result(fsm.Applied{Err: err})
	}
	a, err := e.propose(ctx, Update, c)
	a.Err = err
	return m.result(a)
}

// scratch holds values that are passed to codecs by pointer.
type scratch[U, R any] struct {
	update, read U
	result       R
	data         []byte
}

func (m *Machine[S, U, R]) scratch() *scratch[U, R] {
	if s, ok := m.scratches.Get().(*scratch[U, R]); ok {
		return s
	}
	return new(scratch[U, R])
}

func (m *Machine[S, U, R]) putScratch(s *scratch[U, R]) {
	*s = scratch[U, R]{data: s.data[:0]}
	m.scratches.Put(s)
}

// encode appends an encoded update to b, and checks that it can be decoded. An update in
// the log that cannot be decoded would end every node.
func (m *Machine[S, U, R]) encode(b []byte, u U) ([]byte, error) {
	s := m.scratch()
	defer m.putScratch(s)
	s.update = u
	begin := len(b)
	b, err := m.definition.UpdateCodec.Encode(b, &s.update, &s.read)
	if n := len(b) - begin; err == nil && n > updateBytesMax {
		err = fmt.Errorf("%w: %d bytes, at most %d", fsm.ErrTooLarge, n, updateBytesMax)
	}
	return b, err
}

// result decodes the result of an update.
func (m *Machine[S, U, R]) result(a fsm.Applied) (fsm.Result[R], error) {
	r := fsm.Result[R]{Applied: a}
	if a.Err != nil || !m.results {
		return r, a.Err
	}
	s := m.scratch()
	defer m.putScratch(s)
	s.data = append(s.data, a.Data...)
	if err := m.definition.ResultCodec.Decode(s.data, &s.result); err != nil {
		r.Err = fmt.Errorf("%w: entry %d was applied, but its result cannot be decoded: %w", fsm.ErrUnknown, a.Index, err)
		return r, r.Err
	}
	r.Value = s.result
	return r, nil
}

// updateBytesMax limits an update, because other messages wait behind it in each queue.
const updateBytesMax = 16 << 20

// Read calls f with the state after all updates that were acknowledged before the call of
// Read, on any node. No update is applied on this node while f runs. f must be quick. It
// must not change the state, keep pointers into it, or call methods of the Machine.
func (m *Machine[S, U, R]) Read(ctx context.Context, f func(*S)) error {
	e, err := m.engine()
	if err != nil {
		return err
	}
	return e.read(ctx, false, func() { m.machine.View(f) })
}

// LeaseRead is like Read. If this node leads, and a majority has answered it within
// (E-2)*H/2, it does not ask the majority. H is Config.Heartbeat, and E is
// Config.ElectionTimeout in heartbeats, rounded up: with the defaults 0.4 s. It relies on
// the members' clocks: no clock may run twice as fast as another, or stop while its host
// is suspended. Otherwise a read may miss updates that another leader has acknowledged. If
// members have other settings, the shortest of these times counts. A member that gets shorter
// settings must first be stopped for its old ElectionTimeout.
func (m *Machine[S, U, R]) LeaseRead(ctx context.Context, f func(*S)) error {
	e, err := m.engine()
	if err != nil {
		return err
	}
	return e.read(ctx, true, func() { m.machine.View(f) })
}

// Wait waits until this node has applied the log up to an index, for example the index of
// an update that was proposed on another node. Then Stale sees that update.
func (m *Machine[S, U, R]) Wait(ctx context.Context, index uint64) error {
	e, err := m.engine()
	if err != nil {
		return err
	}
	return e.wait(ctx, index)
}

// Stale calls f with the state of this node, without waiting. The state may lack updates
// that other nodes have acknowledged.
func (m *Machine[S, U, R]) Stale(f func(*S)) error {
	e, err := m.engine()
	if err != nil {
		return err
	}
	e.view(func() { m.machine.View(f) })
	return nil
}

// view calls f. The state machine does not change while f runs.
func (n *Node) view(f func()) {
	n.state.RLock()
	defer n.state.RUnlock()
	f()
}

// Leader returns the leader that this node knows. This is a hint, because the leader may
// have changed.
func (m *Machine[S, U, R]) Leader() (name string, ok bool) {
	e, err := m.engine()
	if err != nil {
		return "", false
	}
	name = e.leader()
	return name, name != ""
}

// leader returns the name of the leader that the node knows.
func (n *Node) leader() string { return n.status.Load().Leader }

// Status returns the status of the node. It waits at most one heartbeat for the node's
// loop. If the loop does not answer, for example because the disk hangs, it returns an
// older status.
func (m *Machine[S, U, R]) Status() Status {
	e, err := m.engine()
	if err != nil {
		return Status{Node: m.config.Node, Role: "stopped"}
	}
	return e.Status()
}

// Status returns the status of the node.
func (n *Node) Status() Status {
	ctx, cancel := context.WithTimeout(context.Background(), max(n.config.Tick, time.Millisecond))
	defer cancel()
	answer := make(chan *Status, 1)
	if err := n.do(ctx, func(*Core) { answer <- n.currentStatus() }); err != nil {
		s := *n.status.Load()
		s.Age = time.Since(s.at)
		return s
	}
	return *<-answer
}

// ChangeMembers makes all changes of the members together, and returns when they are
// made. Only the leader accepts changes.
func (m *Machine[S, U, R]) ChangeMembers(ctx context.Context, changes ...Change) error {
	e, err := m.engine()
	if err != nil {
		return err
	}
	return e.ChangeMembers(ctx, changes...)
}

// TransferLeader makes another member the leader. It returns when that member leads, or
// when ctx ends. On a node that does not lead, to must be the node itself.
func (m *Machine[S, U, R]) TransferLeader(ctx context.Context, to string) error {
	e, err := m.engine()
	if err != nil {
		return err
	}
	return e.TransferLeader(ctx, to)
}

// TransferLeader makes another member the leader.
func (n *Node) TransferLeader(ctx context.Context, to string) error {
	poll := time.NewTicker(n.config.Tick)
	defer poll.Stop()
	for requested := false; ; {
		var err error
		var leads bool
		if e := n.do(ctx, func(c *Core) {
			m, _ := c.members.named(to)
			leads = m.ID != 0 && c.leader == m.ID
			if !leads && !requested {
				if m.ID == 0 || m.Learner {
					err = c.members.noVoteError(to)
				} else {
					err = c.TransferLeader(m.ID)
				}
			}
		}); e != nil {
			return e
		}
		switch {
		case leads || err != nil:
			return err
		}
		requested = true
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("raft: %q is not the leader yet: %w", to, ctx.Err())
		}
	}
}

// Snapshot takes a snapshot now, and returns the index of the last entry that it covers.
func (m *Machine[S, U, R]) Snapshot(ctx context.Context) (index uint64, err error) {
	e, err := m.engine()
	if err != nil {
		return 0, err
	}
	return e.Snapshot(ctx)
}

// Snapshot takes a snapshot now.
func (n *Node) Snapshot(ctx context.Context) (index uint64, err error) {
	type taken struct {
		index uint64
		err   error
	}
	answer := make(chan taken, 1) // the caller may have stopped waiting
	if err := n.do(ctx, func(c *Core) {
		applied := n.applier.applied.Load()
		if applied == c.SnapshotIndex() {
			answer <- taken{index: applied}
			return
		}
		n.snapshotWaiters = append(n.snapshotWaiters, snapshotWaiter{applied, func(index uint64, err error) { answer <- taken{index, err} }})
		n.takeSnapshot()
	}); err != nil {
		return 0, err
	}
	select {
	case at := <-answer:
		return at.index, at.err
	case <-n.done:
		return 0, stopped(n.err)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
