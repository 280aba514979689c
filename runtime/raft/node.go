package raft

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

// StateMachine is what a node applies committed entries to; *fsm.Replicated is one. Only
// one goroutine at a time calls it.
type StateMachine interface {
	// Apply applies the data of an entry, and calls result for each command in it. An
	// error means that the entry is damaged, and ends the node.
	Apply(index, term uint64, data []byte, result func(client, sequence uint64, a fsm.Applied)) error
	// Snapshot returns a function that writes all data that Prepare needs. If frozen is
	// true, another goroutine may call Apply while write runs.
	Snapshot() (write func(w io.Writer) error, frozen bool, err error)
	// Prepare reads the data that write has written, and returns a function that installs
	// that state. Prepare changes nothing, and may run at the same time as other methods.
	Prepare(r io.Reader) (install func(), err error)
	// Verify returns an error if Prepare could not decode the data that write has written.
	// It may run at the same time as other methods.
	Verify(r io.Reader) error
	// Checkpoint receives a snapshot that was written or installed: the index of its last
	// entry, its size in bytes, and a function that opens it for reading.
	Checkpoint(index uint64, size int64, open func() (io.ReadCloser, error))
}

// NodeConfig configures a Node. After StartNode the node owns Disk, Machine and
// Transport, and closes Disk.
type NodeConfig struct {
	Core      CoreConfig // the node sets ID, GroupID and Stored from the disk
	Topology  string
	GroupName string
	Disk      Disk
	Machine   StateMachine
	Transport transport.Transport // nil: the node has no peers
	Group     uint64              // number of the group's messages in the transport
	Prefer    string              // member that leads if it can; "": any member, or as Spread says
	Spread    int                 // number of this group, from 1, if several groups should be led by different members; 0: there is only this group
	Tick      time.Duration
	Logger    *slog.Logger

	ChecksumEvery uint64 // see Config.ChecksumEvery

	// LostRecord says what to do about a log whose folder does not contain the record of the
	// node. "": the same as about a lost log.
	LostRecord string

	// Led is called by the node's loop when the leader, its term, or whether this node
	// leads has changed. Led must not wait. It may be nil.
	Led func(fsm.Leadership)
}

// Node drives a Core. Its loop handles peers, proposals and the log. Two other goroutines
// do the work that may be slow: the applier applies entries to the state machine, and the
// snapshotter reads, writes and sends snapshots.
type Node struct {
	config      NodeConfig
	listener    *listener // set before the node is used; nil: it listens on no address
	core        *Core
	applier     *applier
	snapshotter *snapshotter
	logger      *slog.Logger

	record  Record
	groupID atomic.Uint64 // GroupID of record
	log     wal.Log       // nil while the node is not a member of a group, see bootstrap

	// state is locked for writing while the state machine changes.
	state   sync.RWMutex
	applied func() // called after the state machine changed; may be nil

	inbox         inbox
	drained       inbox // content that the loop took out of inbox
	wake          chan struct{}
	proposalSlots *slots    // one for each proposal that waits for an answer
	callPool      sync.Pool // see newCall
	readSlots     *slots    // one for each read that a goroutine waits for
	status        atomic.Pointer[Status]
	agreed        atomic.Int64 // of Core, at the last tick

	stop        chan struct{}
	stopped     sync.Once
	done        chan struct{}
	errReturned atomic.Bool // Err has returned the error of the node
	err         error       // why the node ended; set before done is closed

	began               time.Time // when the node was made
	ticks               int64
	bootstrap           *bootstrap // nil after the node has the log of a group
	initialState        []byte     // initial state of the state machine, for the first snapshot of a group
	pendingChange       *pendingChange
	waitingPeers        map[string]uint64 // nodes without a group that asked for an introduction, and the numbers of their questions
	rateLimits          rateLimits
	otherGroupMessages  uint64 // messages of other groups that were refused
	leaderless          leaderless
	leaderPreference    leaderPreference
	concurrentProposals bool              // more than one proposal waits: several callers propose
	behind              atomic.Bool       // too many bytes wait to be applied
	incomingSnapshot    *incomingSnapshot // the snapshot whose message the core is processing
	snapshotRunning     bool              // a snapshot is being taken
	snapshotWaiters     []snapshotWaiter  // callers that wait for a snapshot
	snapshotError       string            // why the last snapshot failed
	peerNames           map[uint64]string // names under which nodes have sent messages, by id
	transportPeers      map[string]bool   // peers that the transport knows
	heldCommits         []Message         // see holdCommits
	outgoing            map[uint64][]transport.Message
	order               []uint64 // keys of outgoing, in the order of the first message
}

// errNodeStopped ends the requests that wait when Close is called.
var errNodeStopped = fmt.Errorf("raft: the node was closed: %w", fsm.ErrStopped)

// StartNode starts a node.
func StartNode(c NodeConfig) (*Node, error) {
	n, err := newNode(c)
	if err != nil {
		return nil, err
	}
	n.begin()
	go n.applier.run()
	go n.snapshotter.run()
	go n.run()
	return n, nil
}

// newNode makes a node without starting its goroutines.
func newNode(c NodeConfig) (*Node, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Tick <= 0 {
		return nil, errors.Join(errors.New("raft: NodeConfig.Tick must be above 0"), c.Disk.Close())
	}
	n := &Node{
		config: c, logger: c.Logger, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		outgoing: make(map[uint64][]transport.Message), began: time.Now(),
	}
	n.config.Core.Types = typesOf(c.Machine)
	n.applier, n.snapshotter = newApplier(n, c.Machine), newSnapshotter(n, c.Machine)
	if err := n.prepare(); err != nil {
		return nil, errors.Join(err, n.closeDisk())
	}
	n.proposalSlots = newSlots(n.core.config.PendingMax / 2) // the other half is for groups of commands
	n.readSlots = newSlots(readsMax)
	n.applier.updateNotes()
	n.publishStatus()
	return n, nil
}

// begin registers the node with the transport.
func (n *Node) begin() {
	if t := n.config.Transport; t != nil {
		t.Handle(n.config.Group, n.receive)
		if b := n.bootstrap; b != nil {
			for name, address := range n.config.Core.Peers {
				n.setPeer(name, address)
			}
			for _, name := range b.peersToAsk() {
				n.sendIntroduction(name, 0, b.number)
			}
		}
	}
	if n.bootstrap == nil {
		n.startMember()
	}
}

// prepare loads the core and the state machine from the disk.
func (n *Node) prepare() (err error) {
	c := &n.config.Core
	c.Log = func(level LogLevel, text string) {
		n.logger.Log(context.Background(), level, text, slog.String("node", c.Name))
	}
	if c.Now == nil {
		c.Now = func() int64 { return time.Now().UnixNano() }
	}
	if c.Uptime == nil {
		began := time.Now()
		c.Uptime = func() time.Duration { return time.Since(began) }
	}
	if c.Nonce == 0 {
		c.Nonce = nonce()
	}
	c.LeaseTime = leaseTime(cmp.Or(c.ElectionTicks, defaultElectionTicks), n.config.Tick)
	if err := checkPeers(c.Peers); err != nil {
		return err
	}
	if err := n.identify(); err != nil {
		return err
	}
	if err := checkTypes(c.Types, c.Stored); err != nil {
		return err
	}
	n.groupID.Store(c.GroupID)
	if c.Stored.Snapshot != nil {
		if err := n.restore(&c.Stored, c.GroupID); err != nil {
			return fmt.Errorf("raft: the snapshot at %d: %w", c.Stored.Snapshot.GetMetadata().GetIndex(), err)
		}
	}
	n.core, err = NewCore(*c)
	c.Stored = wal.Stored{} // the core has taken over the entries
	if err != nil || len(n.core.members) > 0 {
		return err
	}
	var initial bytes.Buffer
	write, _, err := n.config.Machine.Snapshot()
	if err == nil {
		err = write(&initial)
	}
	if err != nil {
		return fmt.Errorf("raft: the first snapshot: %w", err)
	}
	n.initialState = initial.Bytes()
	n.bootstrap = newBootstrap(&n.core.config)
	if n.config.Transport == nil { // the node has no peers that it could ask
		n.bootstrap.tick = soleMemberTimeouts * n.bootstrap.election
		return n.bootstrapStep()
	}
	return nil
}

// run is the goroutine of the node's loop.
func (n *Node) run() {
	defer close(n.done)
	ticks := time.NewTimer(n.untilTick())
	defer ticks.Stop()
	for {
		n.releaseHeld()
		tick := false
		select {
		case <-n.stop:
			n.shutDown(errNodeStopped)
			return
		case <-ticks.C:
			ticks.Reset(n.untilTick())
			tick = true
		case <-n.wake:
			if n.concurrentProposals && n.inbox.hasProposals() {
				n.waitForBatch()
			}
		}
		if err := n.runOnce(tick); err != nil {
			n.logger.Error("raft: the node stops", slog.String("node", n.config.Core.Name), slog.Any("error", err))
			n.shutDown(err)
			return
		}
	}
}

// untilTick returns the time until the next tick. All groups of one node tick at the same
// time, so that one wake-up serves all groups, and their heartbeats share frames.
// Different nodes tick at different times, so that they do not start elections at the
// same time. A wall clock that jumps does not change the time between two ticks, because
// leases rely on it.
func (n *Node) untilTick() time.Duration {
	return untilTick(n.began.UnixNano()+int64(time.Since(n.began)), MemberID(n.config.Core.Name), n.config.Tick)
}

// untilTick returns the time from now, in Unix nanoseconds, until the next tick of a node.
// The number spreads the ticks of different nodes.
func untilTick(now int64, number uint64, tick time.Duration) time.Duration {
	return tick - time.Duration((uint64(now)+number%uint64(tick))%uint64(tick))
}

// waitForBatch waits a moment while the applier answers callers. These callers often
// propose again at once. Then one sync covers all their new proposals.
func (n *Node) waitForBatch() {
	runtime.Gosched()
	if !n.applier.busy.Load() {
		return
	}
	began := time.Now()
	for i := 0; i < batchYieldsMax && n.applier.busy.Load() && time.Since(began) < batchDelayMax; i++ {
		runtime.Gosched()
	}
	runtime.Gosched()
}

// runOnce is one iteration of the node's loop: it handles the content of the inbox and
// carries out the effects. An error ends the node.
func (n *Node) runOnce(tick bool) error {
	n.inbox.swap(&n.drained, !n.isBehind())
	n.take(&n.drained)
	if tick {
		n.ticks++
		_ = n.core.Tick()
		n.agreed.Store(n.core.agreed())
		n.pollNewMembers()
		if err := n.bootstrapTick(); err != nil {
			return err
		}
	}
	if err := n.runEffects(); err != nil {
		return err
	}
	n.publishStatus()
	if tick {
		term, leads := n.core.Leads()
		n.snapshotter.tick(loopState{n.ticks, term, leads})
		n.watchLeader()
		n.transferToPreferred()
	}
	return nil
}

// isBehind reports whether too many bytes wait to be applied. Then the node takes no
// proposals.
func (n *Node) isBehind() bool {
	behind := n.applier.bytes.Load() > unappliedBytesMax
	n.behind.Store(behind)
	return behind
}

// runEffects carries out all effects. The guarantees of the package depend on this order.
func (n *Node) runEffects() error {
	for n.log != nil && n.core.HasEffects() {
		e := n.core.Effects()
		n.send(n.holdCommits(e.Early))
		if e.Sync {
			n.sendHeld() // otherwise these messages would wait for the disk
		}
		var state preparedState
		if e.Snapshot != nil {
			var err error
			if state, err = n.install(e.Snapshot); err != nil {
				return err
			}
		}
		if e.State != nil || len(e.Entries) > 0 {
			if err := n.log.Save(e.State, e.Entries, e.Sync); err != nil {
				return err
			}
		}
		n.send(e.Late)
		n.applier.put(&e, state)
		if e.Members != nil {
			n.updatePeers(e.Members)
		}
		if err := n.core.Advance(); err != nil {
			return err
		}
	}
	n.finishIncoming()
	if n.log != nil && n.core.WantsSnapshot(n.applier.applied.Load()) {
		n.takeSnapshot()
	}
	return n.core.Err()
}

// takeSnapshot asks the applier for a snapshot, unless one is being taken.
func (n *Node) takeSnapshot() {
	if !n.snapshotRunning {
		n.snapshotRunning = true
		n.applier.requestSnapshot(n.log)
	}
}

// finishSnapshot commits a snapshot. The applier or the snapshotter calls it. If a state
// cannot be written, the node keeps running: its state is intact, and all other members
// would fail in the same way.
func (n *Node) finishSnapshot(t *snapshotWrite) {
	closed := n.put(func(b *inbox) {
		b.calls = append(b.calls, func(c *Core) {
			n.snapshotRunning = false
			at, err := t.index(), t.err
			if err == nil && at > c.SnapshotIndex() { // otherwise a newer snapshot of the leader was installed
				if err = t.body.Commit(t.head); err != nil {
					c.err = err // the log may be half written
				} else {
					c.Compact(t.head)
					n.applier.snapshotSaved(t.log, at, t.size)
				}
			} else if err != nil {
				c.SnapshotFailed(at)
				n.logger.Error("raft: a snapshot failed; the log grows until the next one succeeds", slog.Any("error", err))
			}
			if n.snapshotError = ""; err != nil {
				n.snapshotError = err.Error()
			}
			t.abort()
			if err == nil {
				at = max(at, c.SnapshotIndex())
			}
			n.answerSnapshotWaiters(at, err)
		})
	})
	if closed != nil {
		t.abort()
	}
}

// snapshotWaiter is a caller that waits for a snapshot.
type snapshotWaiter struct {
	index uint64 // index up to which the log was applied when the caller asked; the snapshot must cover it
	tell  func(index uint64, err error)
}

// answerSnapshotWaiters sends the result of a snapshot at an index to the callers that
// wait for it. Callers that asked after this snapshot was started wait for another
// snapshot.
func (n *Node) answerSnapshotWaiters(at uint64, err error) {
	waiters := n.snapshotWaiters
	n.snapshotWaiters = nil
	for _, t := range waiters {
		if at < t.index {
			n.snapshotWaiters = append(n.snapshotWaiters, t)
			continue
		}
		t.tell(at, err)
	}
	if len(n.snapshotWaiters) > 0 {
		n.takeSnapshot()
	}
}

// fail ends the node with an error. Any goroutine may call it.
func (n *Node) fail(err error) {
	_ = n.put(func(b *inbox) {
		b.calls = append(b.calls, func(c *Core) {
			if c.err == nil {
				c.err = err
			}
		})
	})
}

// stateChanged is called by the applier after the state machine changed.
func (n *Node) stateChanged() {
	n.state.RLock()
	applied := n.applied
	n.state.RUnlock()
	if applied != nil {
		applied()
	}
	if n.behind.Load() {
		n.wakeUp()
	}
}

// shutDown ends the requests and the goroutines that wait for the node, and closes the
// disk.
func (n *Node) shutDown(err error) {
	if n.config.Transport != nil {
		n.config.Transport.Handle(n.config.Group, nil)
	}
	n.err = err
	n.core.Fail(err)
	n.applier.close(err)
	n.finishIncoming()
	n.snapshotter.close(err)
	n.inbox.mu.Lock()
	n.inbox.closed, n.inbox.err = true, stopped(err)
	rest := inbox{proposals: n.inbox.proposals, reads: n.inbox.reads, calls: n.inbox.calls}
	n.inbox.proposals, n.inbox.reads, n.inbox.calls, n.inbox.messages = nil, nil, nil, nil
	n.inbox.mu.Unlock()
	n.take(&rest) // the core refuses all of them
	if n.pendingChange != nil {
		n.failPendingChange(stopped(err))
	}
	if closed := n.closeDisk(); closed != nil && errors.Is(err, errNodeStopped) {
		n.err = closed
	}
	n.publishStatus()
}

// closeDisk closes the log and the disk. Nothing may be written any more.
func (n *Node) closeDisk() (err error) {
	if n.log != nil {
		err = n.log.Close()
	}
	return errors.Join(err, n.config.Disk.Close())
}

// Close stops the node and closes its log. Requests that wait end with an error. If the
// node has already ended with an error, Close returns this error, unless Err has returned
// it before.
func (n *Node) Close() error {
	n.stopped.Do(func() { close(n.stop) })
	<-n.done
	<-n.applier.ended
	<-n.snapshotter.ended
	if errors.Is(n.err, errNodeStopped) || n.errReturned.Load() {
		return nil
	}
	return n.err
}

// onApply sets a function that is called after the state machine changed. It must not
// wait.
func (n *Node) onApply(f func()) {
	n.state.Lock()
	defer n.state.Unlock()
	n.applied = f
}

// Done returns a channel that is closed when the node has ended. Err returns the reason.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns why the node ended, once Done is closed.
func (n *Node) Err() error {
	select {
	case <-n.done:
		n.errReturned.Store(true)
		return n.err
	default:
		return nil
	}
}
