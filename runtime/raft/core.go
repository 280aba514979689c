package raft

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft/wal"
)

const (
	messageBytesMax      = 256 << 10              // of the entries in one message, unless a single entry is larger; the same limit as for a batch in one entry
	inflightMax          = 256                    // messages in flight to a follower, as the engine's documentation advises
	inflightBytesMax     = 32 << 20               // bytes of updates in flight; while there are fewer, one more message is sent: 1 Gbit/s for a quarter of a second; see windowBytesMax
	uncommittedBytesMax  = 256 << 20              // entries that no majority has saved: a leader without followers must not fill its memory
	unappliedBytesMax    = 256 << 20              // entries that wait for the state machine; above it, the node takes no proposals until the state machine catches up
	batchDelayMax        = 100 * time.Microsecond // how long the node waits for more proposals: less than a sync takes
	batchYieldsMax       = 10_000                 // limit of yields in this time, for the virtual time of synctest, which does not pass while a goroutine yields; in real time there are fewer
	trailingBytesMax     = 64 << 20               // bytes of entries kept after a snapshot covers them
	snapshotBytes        = 256 << 20              // bytes of entries after which a snapshot is taken, even before SnapshotEvery entries
	heldBytesMax         = 192 << 20              // bytes of entries kept for followers that receive a snapshot; less than snapshotBytes, or a new snapshot would be taken at once after each snapshot
	retryTimeouts        = 2                      // election timeouts without an answer, after which a command is proposed again
	retryTicksMax        = 1 << 8                 // limit of the wait, which doubles with each repetition
	defaultElectionTicks = 10                     // so that some heartbeats may be lost
	removedTimeouts      = 4                      // election timeouts for which a removed node keeps running: members that have not received the removal may need its vote
)

// Errors of a node.
var (
	// ErrEngine: the consensus engine found that its own state is invalid. The node
	// stops. The outcome of the requests that wait is unknown.
	ErrEngine = errors.New("raft: the engine has failed")
	// ErrRemoved: the node is not a member of its group any more.
	ErrRemoved = errors.New("raft: this node was removed from its group")
	// ErrMembers: a change of the members was refused; nothing was changed.
	ErrMembers = errors.New("raft: cannot change the members")
)

// CoreConfig configures a Core.
type CoreConfig struct {
	Name           string            // name of this node
	ID             uint64            // id of this node's disk
	GroupID        uint64            // identity of the group; 0: the node is not a member of one yet
	Peers          map[string]string // first members of a new group, including this node: name to address; later the addresses at which this node reaches them
	Join           bool              // the node never founds a group; it waits until the group of its Peers adds it
	ElectionTicks  int               // ticks without a message from a leader before an election; default 10
	HeartbeatTicks int               // ticks between two heartbeats of the leader; default 1
	Forward        bool              // a follower forwards proposals to the leader; otherwise it answers with the leader's name
	PendingMax     int               // commands that may wait for an answer, rounded up to a power of two; default 4096
	SnapshotEvery  uint64            // entries between snapshots; default 100,000
	Trailing       uint64            // entries kept after a snapshot covers them, so that a slow follower gets entries instead of the whole state; default 10,000
	Nonce          uint64            // random, not 0; distinguishes this start of the node from all others
	Types          string            // types of states and updates that the node's program knows, see fsm.Batch.Describe
	Now            func() int64      // Unix nanoseconds, used as the time of entries; default 0

	// Uptime is a monotonic clock that also advances while the process is suspended.
	// LeaseTime is how long, by Uptime, ReadLease relies on a majority's answer: at most half
	// of the shortest time that ElectionTicks may take on this node. If other members have
	// shorter ones, these count. 0 disables leases. A Node sets it.
	Uptime    func() time.Duration
	LeaseTime time.Duration

	LostLog string // see Config.LostLog

	Log    func(level LogLevel, text string)
	Stored wal.Stored // content of the log; zero if there is no log yet
}

// Core is a node of a group as a state machine without I/O: ticks, messages, proposals
// and reads go in, and Effects come out. It has no goroutine, clock, disk or network. The
// caller drives it as follows:
//
//	for core.HasEffects() {
//		e := core.Effects()
//		send(e.Early)                                      // with a snapshot also its body; then call ReportSnapshot
//		save(e.Snapshot); save(e.State, e.Entries, e.Sync) // durable before the next steps
//		send(e.Late)
//		queue(e.Snapshot, e.Apply, e.Reads)                 // for the state machine, in this order
//		core.Advance()
//	}
//
// Between Effects and Advance the caller must not call any other method. Only Results may
// be called at any time, by the goroutine of the state machine.
type Core struct {
	id      uint64
	groupID uint64
	config  CoreConfig
	node    *raft.RawNode
	memory  *memory
	members members
	conf    *pb.ConfState

	proposalsMu    sync.Mutex // guards pending, clientUpdates and notes, which the goroutine of the state machine uses through Results and Note
	pending        pending
	notes          notes
	clocks         clocks
	toLeader       []Message // notes that a follower sends to the leader although it does not forward updates
	clientUpdates  clientUpdates
	reads          reads
	changes        map[uint64]Waiter  // waiters of membership changes, by nonce
	syncedCommit   uint64             // commit index that is durable
	madeChanges    []madeChange       // changes whose commit may not be durable yet
	contacts       map[uint64]contact // by member
	proposedChange proposedChange     // the newest change, until the engine has put it into the log
	changeNumber   uint64
	batch          fsm.Batch
	forwardLimited bool // commands wait because too many bytes were forwarded and not answered

	lease              lease
	leases             map[uint64]time.Duration // lease times of other members, by id
	transferTerm       uint64                   // term in which this node has told another one to campaign at once
	leaderTick         int64                    // tick of the last message of a leader
	tick               int64
	term               uint64 // as of the last Effects
	leader             uint64
	applied            uint64                      // index up to which the driver received the committed entries
	snapshots          map[uint64]followerSnapshot // snapshots that are being sent, by follower
	snapshotRetryIndex uint64                      // after a failed snapshot, the index from which the next one may be taken
	snapshotRetryTick  int64                       // or the tick from which it may be taken if a member waits for it
	effects            Effects
	ready              raft.Ready
	inEffects          bool
	removed            bool
	removedTick        int64 // tick at which the node found that it was removed
	err                error // why the node ended; final
}

// NewCore makes a node from the content of its log. A node without a log, or with an
// empty one, takes proposals and reads and keeps them until Enter is called.
func NewCore(c CoreConfig) (*Core, error) {
	if c.Name == "" || c.ID == 0 {
		return nil, errors.New("raft: CoreConfig.Name and ID must be set")
	}
	c.setDefaults()
	n := &Core{id: c.ID, config: c, changes: map[uint64]Waiter{}, snapshots: map[uint64]followerSnapshot{}, contacts: map[uint64]contact{}}
	n.pending = newPending(c.PendingMax, n.id, c.Nonce)
	n.pending.types = c.Types
	return n, n.Enter(c.GroupID, c.Stored)
}

// Enter makes the node a member of a group and loads the content of the group's log.
// Before, the node must not have been a member, and must not have promised anything to
// other nodes.
func (c *Core) Enter(groupID uint64, s wal.Stored) error {
	c.groupID, c.config.Stored = groupID, wal.Stored{}
	c.members = members{}
	var err error
	if s.Snapshot, err = headOf(s.Snapshot); err != nil {
		return err
	}
	c.conf = s.Snapshot.GetMetadata().GetConfState()
	c.applied = s.Snapshot.GetMetadata().GetIndex()
	if s.Snapshot != nil {
		h, _, err := readSnapshot(s.Snapshot.GetData())
		if err != nil {
			return err
		}
		c.members.apply(h.members, c.conf)
	}
	if s.State == nil {
		s.State = new(pb.HardState)
	}
	c.memory, c.syncedCommit = newMemory(s.Snapshot, s.State, s.Entries), s.State.GetCommit()
	c.checkRemoved()
	return c.start()
}

func (c *CoreConfig) setDefaults() {
	set := func(v *int, value int) {
		if *v <= 0 {
			*v = value
		}
	}
	set(&c.ElectionTicks, defaultElectionTicks)
	set(&c.HeartbeatTicks, 1)
	set(&c.PendingMax, 4096)
	for n := 2; ; n *= 2 {
		if n >= c.PendingMax {
			c.PendingMax = n
			break
		}
	}
	if c.SnapshotEvery == 0 {
		c.SnapshotEvery = snapshotEveryDefault
	}
	if c.Trailing == 0 {
		c.Trailing = 10_000
	}
	if c.Now == nil {
		c.Now = func() int64 { return 0 }
	}
	if c.Uptime == nil {
		c.Uptime = func() time.Duration { return 0 }
		c.LeaseTime = 0
	}
	if c.Nonce == 0 {
		c.Nonce = c.ID
	}
}

// start makes the engine, from c.memory.
func (c *Core) start() (err error) {
	defer c.recoverPanic(&err)
	c.node, err = raft.NewRawNode(&raft.Config{
		ID:                        c.id,
		ElectionTick:              c.config.ElectionTicks,
		HeartbeatTick:             c.config.HeartbeatTicks,
		Storage:                   c.memory,
		Applied:                   c.applied,
		MaxSizePerMsg:             messageBytesMax,
		MaxCommittedSizePerReady:  16 * messageBytesMax,
		MaxUncommittedEntriesSize: uncommittedBytesMax,
		MaxInflightMsgs:           inflightMax,
		MaxInflightBytes:          inflightBytesMax,
		CheckQuorum:               true,
		PreVote:                   true,
		StepDownOnRemoval:         true,
		ReadOnlyOption:            raft.ReadOnlySafe,
		DisableProposalForwarding: !c.config.Forward,
		Logger:                    logger{c.config.Log},
	})
	return err
}

// recoverPanic turns a panic of the engine into the error that ends the node.
func (c *Core) recoverPanic(err *error) {
	if cause := recover(); cause != nil {
		c.err = fmt.Errorf("%w: %v", ErrEngine, cause)
		*err = c.err
	}
}

// ID returns the id of the node.
func (c *Core) ID() uint64 { return c.id }

// Stranger reports whether, as far as this node knows, the node with an id is not a
// member.
func (c *Core) Stranger(id uint64) bool {
	_, ok := c.members[id]
	return !ok
}

// Err returns the error that ended the node, or nil while the node runs.
func (c *Core) Err() error { return c.err }

// Tick advances the clock of the Core by one tick.
func (c *Core) Tick() (err error) {
	if c.err != nil {
		return c.err
	}
	defer c.recoverPanic(&err)
	c.tick++
	c.node.Tick()
	_, leads := c.Leads()
	maps.DeleteFunc(c.snapshots, func(_ uint64, s followerSnapshot) bool { return !leads || s.until > 0 && s.until <= c.tick })
	c.leaveJoint()
	c.checkClock()
	if c.removed && c.isNeeded() {
		c.removedTick = c.tick
	}
	if c.removed && c.tick-c.removedTick >= int64(removedTimeouts*c.config.ElectionTicks) {
		c.err = ErrRemoved
	}
	return c.err
}

// Campaign begins an election without waiting for the timeout.
func (c *Core) Campaign() (err error) {
	if c.err != nil {
		return c.err
	}
	defer c.recoverPanic(&err)
	return c.node.Campaign()
}

// Step takes a message of a peer. from is the id of the peer according to the transport.
// After an error that matches ErrMessage the message is ignored, because the peer is at
// fault. Other errors end the node.
func (c *Core) Step(from uint64, m *pb.Message) (err error) {
	if c.err != nil {
		return c.err
	}
	defer c.recoverPanic(&err)
	if c.Stranger(from) && !acceptedFromNonMembers[m.GetType()] {
		return errNonMember
	}
	if err := c.checkMessage(from, m); err != nil {
		if errors.Is(err, ErrLogLost) || errors.Is(err, ErrConflict) {
			c.err = err
		}
		return err
	}
	if !c.mayVote(m) {
		return nil
	}
	if !c.Stranger(from) {
		c.noteContact(m)
	}
	if c.removed && c.Stranger(c.id) && needRemovedNode[m.GetType()] {
		c.removedTick = c.tick
	}
	_ = c.node.Step(m) // the engine refuses messages that are late or outdated; their senders repeat them if needed
	c.noteLeader(m)
	return nil
}
