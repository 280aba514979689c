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
	messageBytesMax     = 256 << 10              // of entries in one message, where one entry alone does not take more: as much as in one entry
	inflightMax         = 256                    // messages on the way to a follower: the engine's own advice
	inflightBytesMax    = 32 << 20               // and their updates, before one more message: 1 Gbit/s for a quarter of a second; see windowBytesMax
	uncommittedBytesMax = 256 << 20              // of entries that no majority has: a leader without followers must not fill its memory
	unappliedBytesMax   = 256 << 20              // of entries that wait for the state machine: no more is taken until it comes up
	batchDelayMax       = 100 * time.Microsecond // less than a sync takes
	trailingBytesMax    = 64 << 20               // of entries kept behind a snapshot
	snapshotBytes       = 256 << 20              // of entries, after which a snapshot is taken before its time
	heldBytesMax        = 192 << 20              // of entries kept for followers that a snapshot is on its way to: less than snapshotBytes, or one would follow another
	retryTimeouts       = 2                      // election timeouts without an answer, after which a command is proposed again
	retryTicksMax       = 1 << 8                 // the wait doubles up to here
	removedTimeouts     = 4                      // election timeouts that one who was removed stays, as the others may need its vote to hear of that
)

// Errors of a node.
var (
	// ErrEngine: the consensus engine has found its own state impossible. The node
	// stops; the outcome of what it was asked for is not known.
	ErrEngine = errors.New("raft: the engine has failed")
	// ErrRemoved: the node is no member of its group any more.
	ErrRemoved = errors.New("raft: this node was removed from its group")
	// ErrMembers: a change of the members is impossible; nothing was changed.
	ErrMembers = errors.New("raft: cannot change the members")
)

// CoreConfig is what a Core starts from.
type CoreConfig struct {
	Name           string            // of this node
	ID             uint64            // of this node's disk
	GroupID        uint64            // identity of the group; 0: the node is not a member of one yet
	Peers          map[string]string // first members of a new group, this node among them: name to address. Later where this node reaches them
	Join           bool              // never found a group: wait to be added to one that Peers belong to
	ElectionTicks  int               // without word from a leader before an election; default 10
	HeartbeatTicks int               // from one word of the leader to the next; default 1
	Forward        bool              // a follower passes proposals on; else it answers with the leader
	PendingMax     int               // commands that wait for an answer, rounded up to a power of two; default 4096
	SnapshotEvery  uint64            // entries; default 100,000
	Trailing       uint64            // entries kept behind a snapshot, so that a follower a little late gets them and not all of the state; default 10,000
	Nonce          uint64            // at random, not 0; tells this start of the node from all others
	Types          string            // what the node's program knows of states and updates, see fsm.Batch.Describe
	Now            func() int64      // Unix nanoseconds, for the time of entries; default 0

	// Uptime is a clock that is never set, and goes on while the process is stopped.
	// LeaseTime is for how long, by it, ReadLease relies on a majority's answer: half of
	// the shortest time that ElectionTicks may take at any member. 0: not at all.
	Uptime    func() time.Duration
	LeaseTime time.Duration

	Log    func(level LogLevel, text string)
	Stored wal.Stored // what the log holds; the zero value: there is no log yet
}

// Core is a node of a group as a function of what happens to it: ticks, messages,
// proposals and reads go in, and Effects come out. It has no goroutine, clock,
// disk or network. The caller drives it so:
//
//	for core.HasEffects() {
//		e := core.Effects()
//		send(e.Early)                                      // of snapshots also the states, which they are the heads of; then ReportSnapshot
//		save(e.Snapshot); save(e.State, e.Entries, e.Sync) // durable before what follows
//		send(e.Late)
//		queue(e.Snapshot, e.Apply, e.Reads)                 // for the state machine, in this order
//		core.Advance()
//	}
//
// Nothing else of it may be called between Effects and Advance. Results alone may be
// called by another goroutine, at any time: that of the state machine.
type Core struct {
	id      uint64
	groupID uint64
	config  CoreConfig
	node    *raft.RawNode
	memory  *memory
	members members
	conf    *pb.ConfState

	proposalsMu    sync.Mutex // guards pending and foreign, which Results uses, too, and notes
	pending        pending
	notes          notes
	clocks         clocks
	toLeader       []Message // notes of a follower that passes no updates on
	clientUpdates  clientUpdates
	reads          reads
	changes        map[uint64]Waiter // changes of members, by their nonce
	lastHeard      map[uint64]int64  // members, and the tick of the last message
	proposedChange proposedChange    // the newest, until it stands in the log
	changeNumber   uint64
	batch          fsm.Batch
	forwardLimited bool // commands wait for answers to those that were passed on

	leaseEnd           time.Duration // until when, by Uptime, nobody else leads
	transferTerm       uint64        // term in which this node was asked to give way
	tick               int64
	term               uint64 // as seen at the last Effects
	leader             uint64
	applied            uint64                      // index up to which the driver was given what is committed
	snapshots          map[uint64]followerSnapshot // those that are on their way, by follower
	snapshotRetryIndex uint64                      // a snapshot has failed: the next is due from here on,
	snapshotRetryTick  int64                       // or from then on if a member waits for it
	effects            Effects
	ready              raft.Ready
	inEffects          bool
	removed            bool
	removedTick        int64 // when it saw that
	err                error // final
}

// NewCore makes the node that a log holds. One without a log, or with an empty one,
// takes proposals and reads, which wait; see Enter.
func NewCore(c CoreConfig) (*Core, error) {
	if c.Name == "" || c.ID == 0 {
		return nil, errors.New("raft: CoreConfig.Name and ID must be set")
	}
	c.setDefaults()
	n := &Core{id: c.ID, config: c, changes: map[uint64]Waiter{}, snapshots: map[uint64]followerSnapshot{}, lastHeard: map[uint64]int64{}}
	n.pending = newPending(c.PendingMax, n.id, c.Nonce)
	n.pending.types = c.Types
	return n, n.Enter(c.GroupID, c.Stored)
}

// Enter makes a node that is not a member of a group, and has promised nothing, the one
// that a log of a group holds.
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
	c.memory = newMemory(s.Snapshot, s.State, s.Entries)
	c.checkRemoved()
	return c.start()
}

func (c *CoreConfig) setDefaults() {
	set := func(v *int, value int) {
		if *v <= 0 {
			*v = value
		}
	}
	set(&c.ElectionTicks, 10)
	set(&c.HeartbeatTicks, 1)
	set(&c.PendingMax, 4096)
	for n := 2; ; n *= 2 {
		if n >= c.PendingMax {
			c.PendingMax = n
			break
		}
	}
	if c.SnapshotEvery == 0 {
		c.SnapshotEvery = 100_000
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

// start makes the engine, from memory.
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

// caught turns a panic of the engine into the error that ends the node.
func (c *Core) recoverPanic(err *error) {
	if cause := recover(); cause != nil {
		c.err = fmt.Errorf("%w: %v", ErrEngine, cause)
		*err = c.err
	}
}

// ID is the node's.
func (c *Core) ID() uint64 { return c.id }

// Stranger reports whether a node is not a member as far as this one knows.
func (c *Core) Stranger(id uint64) bool {
	_, ok := c.members[id]
	return !ok
}

// Err is what has ended the node; nil while it lives.
func (c *Core) Err() error { return c.err }

// Tick tells that the time between two ticks has passed.
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

// Step takes a message of a peer, from its id as the transport knows it. An error
// that matches ErrMessage is the peer's fault: the message is ignored. Others end
// the node.
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
		c.lastHeard[from] = c.tick
	}
	if c.removed && c.Stranger(c.id) && needRemovedNode[m.GetType()] {
		c.removedTick = c.tick
	}
	_ = c.node.Step(m) // what it refuses is late or lost its meaning, and asked again
	return nil
}
