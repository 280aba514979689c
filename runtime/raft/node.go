package raft

import (
	"bytes"
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

// StateMachine is what a node applies committed entries to; *fsm.Replicated is
// one. It is called by one goroutine at a time.
type StateMachine interface {
	// Apply takes the data of an entry, and calls result for each command in it. An
	// error says that the entry is damaged, and ends the node.
	Apply(index, term uint64, data []byte, result func(client, sequence uint64, a fsm.Applied)) error
	// Snapshot returns what writes all that Prepare needs. Where frozen is true, Apply may
	// be called while write runs, by another goroutine.
	Snapshot() (write func(w io.Writer) error, frozen bool, err error)
	// Prepare reads what a write of Snapshot has written, and returns what makes the state
	// so. It changes nothing, and may be called while other methods are.
	Prepare(r io.Reader) (install func(), err error)
	// Checkpoint says where a snapshot that was written or installed can be read again, up
	// to which index it holds the log, and how many bytes it has.
	Checkpoint(index uint64, size int64, open func() (io.ReadCloser, error))
}

// NodeConfig is what a Node is made of. Disk, Machine and Transport are the
// node's from then on; it closes Disk.
type NodeConfig struct {
	Core      CoreConfig // what the disk says is the node's: ID, GroupID, Stored
	Topology  string
	GroupName string
	Disk      Disk
	Machine   StateMachine
	Transport transport.Transport // nil: there are no others
	Group     uint64              // of the messages in the transport
	Prefer    string              // member that is to lead, while it can; "": any, or as Spread says
	Spread    int                 // above 0: the group is one of several that are led by different members, counted from 1
	Tick      time.Duration
	Logger    *slog.Logger

	ChecksumEvery uint64 // see Config

	// Led is called by the node's loop when the leader, its term or who leads here has
	// changed. It must not wait. nil: nothing is told.
	Led func(fsm.Leadership)
}

// Node drives a Core. Its loop deals with peers, proposals and the log; beside it a
// applier deals with the state machine.
type Node struct {
	config      NodeConfig
	core        *Core
	applier     *applier
	snapshotter *snapshotter
	logger      *slog.Logger

	record  Record
	groupID atomic.Uint64 // of record
	log     wal.Log       // nil: the node is not a member yet, see founding

	// state is held for writing while the state machine changes.
	state   sync.RWMutex
	applied func() // called when it has; nil: nobody wants to know

	inbox         inbox
	drained       inbox // what was taken out of inbox
	wake          chan struct{}
	proposalSlots *slots    // one for each proposal under way
	callPool      sync.Pool // see newCall
	readSlots     *slots    // one for each read that a goroutine waits for
	status        atomic.Pointer[Status]

	stop        chan struct{}
	stopped     sync.Once
	done        chan struct{}
	errReturned atomic.Bool // Err has said why the node has ended
	err         error       // why the node has ended; set before done is closed

	ticks               int64
	bootstrap           *bootstrap // nil: the node has the log of a group
	initialState        []byte     // of the state machine at its beginning, for a group's first snapshot
	pendingChange       *pendingChange
	waitingPeers        map[string]uint64 // nodes of no group that have asked who this one is, and the numbers of their questions
	rateLimits          rateLimits
	otherGroupMessages  uint64 // messages of other groups that were refused
	leaderless          leaderless
	leaderPreference    leaderPreference
	concurrentProposals bool              // there is more than one who proposes
	behind              atomic.Bool       // too much waits to be applied
	incomingSnapshot    *incomingSnapshot // whose message the core takes
	snapshotRunning     bool              // a snapshot is being taken
	snapshotWaiters     []snapshotWaiter  // who wait for one
	snapshotError       string            // why the last one was not taken
	peerNames           map[uint64]string // names under which nodes have sent something
	transportPeers      map[string]bool   // whom the transport was told of
	heldCommits         []Message         // see hold
	outgoing            map[uint64][]transport.Message
	order               []uint64 // its keys, in the order of the first message
}

// errNodeStopped ends what waits for a node that was told to stop.
var errNodeStopped = fmt.Errorf("raft: the node was closed: %w", fsm.ErrStopped)

// StartNode starts a node. stored is what the log held when it was opened.
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

// newNode makes a node that does nothing yet.
func newNode(c NodeConfig) (*Node, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Tick <= 0 {
		return nil, errors.Join(errors.New("raft: NodeConfig.Tick must be above 0"), c.Disk.Close())
	}
	n := &Node{
		config: c, logger: c.Logger, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		outgoing: make(map[uint64][]transport.Message),
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

// begin lets others reach the node.
func (n *Node) begin() {
	if t := n.config.Transport; t != nil {
		t.Handle(n.config.Group, n.receive)
		if f := n.bootstrap; f != nil {
			for name, address := range n.config.Core.Peers {
				n.setPeer(name, address)
			}
			for _, name := range f.peersToAsk() {
				n.sendIntroduction(name, 0, f.number)
			}
		}
	}
	if n.bootstrap == nil {
		n.startMember()
	}
}

// prepare makes the core and the state machine what the disk says.
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
	c.Stored = wal.Stored{} // the core holds what it needs of it
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
	if n.config.Transport == nil { // there is nobody to be asked
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
			if n.concurrentProposals && n.inbox.proposes() {
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

// untilTick is how long it is to the next tick. All groups of one node tick at the same
// time, so that a processor wakes up once for them and their heartbeats share frames;
// nodes differ, so that they do not all stand for election at once.
func (n *Node) untilTick() time.Duration {
	tick := uint64(n.config.Tick)
	phase := MemberID(n.config.Core.Name) % tick
	return time.Duration(tick - (uint64(time.Now().UnixNano())+phase)%tick)
}

// gather waits a moment while the applier answers: those who were just answered ask
// again, and all go under one sync.
func (n *Node) waitForBatch() {
	runtime.Gosched()
	if !n.applier.busy.Load() {
		return
	}
	for began := time.Now(); n.applier.busy.Load() && time.Since(began) < batchDelayMax; {
		runtime.Gosched()
	}
	runtime.Gosched()
}

// turn is a round of the node's loop: it takes what has come, and carries out what
// follows from it. An error ends the node.
func (n *Node) runOnce(tick bool) error {
	n.inbox.swap(&n.drained, !n.isBehind())
	n.take(&n.drained)
	if tick {
		n.ticks++
		_ = n.core.Tick()
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

// isBehind reports whether so much waits to be applied that no more is taken.
func (n *Node) isBehind() bool {
	behind := n.applier.bytes.Load() > unappliedBytesMax
	n.behind.Store(behind)
	return behind
}

// work carries out all effects, in the order that all safety rests on.
func (n *Node) runEffects() error {
	for n.log != nil && n.core.HasEffects() {
		e := n.core.Effects()
		n.send(n.holdCommits(e.Early))
		if e.Sync {
			n.sendHeld() // it would wait for the disk
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

// takeSnapshot has the applier take a snapshot, unless it is about to.
func (n *Node) takeSnapshot() {
	if !n.snapshotRunning {
		n.snapshotRunning = true
		n.applier.requestSnapshot(n.log)
	}
}

// snapshotTaken is told by the applier, or the snapshotter, of a snapshot. A state that cannot
// be written is no reason to end: it can be used, and all others would end, too.
func (n *Node) finishSnapshot(t *snapshotWrite) {
	closed := n.put(func(b *inbox) {
		b.calls = append(b.calls, func(c *Core) {
			n.snapshotRunning = false
			at, err := t.index(), t.err
			if err == nil && at > c.SnapshotIndex() { // else the leader's is newer
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

// taker is somebody who waits for a snapshot.
type snapshotWaiter struct {
	index uint64 // up to which the log was applied when it asked: the snapshot holds so much
	tell  func(index uint64, err error)
}

// tellTakers tells what became of a snapshot at an index. Who has asked since it was begun
// waits for another.
func (n *Node) answerSnapshotWaiters(at uint64, err error) {
	takers := n.snapshotWaiters
	n.snapshotWaiters = nil
	for _, t := range takers {
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

// fail ends the node with an error, from another goroutine.
func (n *Node) fail(err error) {
	_ = n.put(func(b *inbox) {
		b.calls = append(b.calls, func(c *Core) {
			if c.err == nil {
				c.err = err
			}
		})
	})
}

// stateChanged is called by the applier, when the state machine has changed.
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

// end ends all that wait for the node.
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
	n.take(&rest) // the core refuses all of it
	if n.pendingChange != nil {
		n.failPendingChange(stopped(err))
	}
	if closed := n.closeDisk(); closed != nil && errors.Is(err, errNodeStopped) {
		n.err = closed
	}
	n.publishStatus()
}

// closeDisk lets go of the disk, when nothing is written any more.
func (n *Node) closeDisk() (err error) {
	if n.log != nil {
		err = n.log.Close()
	}
	return errors.Join(err, n.config.Disk.Close())
}

// Close stops the node: what waits for it ends with an error, its log is closed.
// It returns the error that the node had ended with before, if any, unless Err has.
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

// onApply has a function called when the state machine has changed. It must not
// wait for anything.
func (n *Node) onApply(f func()) {
	n.state.Lock()
	defer n.state.Unlock()
	n.applied = f
}

// Done is closed when the node has ended; Err says why.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err is why the node has ended, once Done is closed.
func (n *Node) Err() error {
	select {
	case <-n.done:
		n.errReturned.Store(true)
		return n.err
	default:
		return nil
	}
}
