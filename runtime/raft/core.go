package raft

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/raft/wal"
)

const (
	messageBytesMax     = 512 << 10 // of entries in one message: below what a transport cuts in pieces
	inflightMax         = 256       // messages on the way to a follower: the engine's own advice
	inflightBytesMax    = 64 << 20  // and their bytes
	uncommittedBytesMax = 256 << 20 // of entries that no majority has: a leader without followers must not fill its memory
	trailingBytesMax    = 64 << 20  // of entries kept behind a snapshot
	snapshotBytes       = 256 << 20 // of entries, after which a snapshot is taken before its time
	snapshotTicksMax    = 100       // after which one that was sent is taken for lost
	retryTimeouts       = 2         // election timeouts without an answer, after which a command is proposed again
	retryTicksMax       = 1 << 12   // the wait doubles up to here
)

// Errors of a node.
var (
	// ErrEngine: the consensus engine has found its own state impossible. The node
	// stops; the outcome of what it was asked for is not known.
	ErrEngine = errors.New("raft: the engine has failed")
	// ErrRemoved: the node is no member of its group any more.
	ErrRemoved = errors.New("raft: this node was removed from its group")
	// ErrMembers: a change of the members is impossible; nothing was changed.
	ErrMembers = errors.New("raft: the members cannot be changed so")
)

// CoreConfig is what a Core starts from.
type CoreConfig struct {
	Name           string            // of this node
	Peers          map[string]string // of a new group, this node among them: name to address; ignored where Stored has a snapshot
	Join           bool              // the group exists: wait to be added to it by one of Peers
	ElectionTicks  int               // without word from a leader before an election; default 10
	HeartbeatTicks int               // from one word of the leader to the next; default 1
	Forward        bool              // a follower passes proposals on; else it answers with the leader
	PendingMax     int               // commands that wait for an answer, rounded up to a power of two; default 4096
	SnapshotEvery  uint64            // entries; default 100,000
	Trailing       uint64            // entries kept behind a snapshot, so that a follower a little late gets them and not all of the state; default 10,000
	Nonce          uint64            // at random; tells this start of the node from all others
	Now            func() int64      // Unix nanoseconds, for the time of entries; default 0
	Log            func(level LogLevel, text string)
	Stored         wal.Stored // what the log holds
}

// Core is a node of a group as a function of what happens to it: ticks, messages,
// proposals and reads go in, and Effects come out. It has no goroutine, clock,
// disk or network. The caller drives it so:
//
//	for core.HasEffects() {
//		e := core.Effects()
//		send(e.Early)
//		save(e.Snapshot); save(e.State, e.Entries, e.Sync) // durable before what follows
//		send(e.Late)
//		restore(e.Snapshot); apply(e.Apply)                 // each result goes to core.Result
//		core.Advance()
//	}
//
// Nothing else of it may be called between Effects and Advance but Result.
type Core struct {
	id      uint64
	config  CoreConfig
	node    *raft.RawNode
	memory  *memory
	members members
	conf    *pb.ConfState

	pending      pending
	foreign      foreign
	reads        reads
	changes      map[uint64]Waiter // changes of members, by their nonce
	changeNumber uint64
	batch        fsm.Batch

	tick      int64
	term      uint64 // as seen at the last Effects
	leader    uint64
	applied   uint64
	snapshots map[uint64]int64 // ticks when they were sent
	effects   Effects
	ready     raft.Ready
	inEffects bool
	removed   bool
	err       error // final
}

// Effects is what the driver does, in the order of the fields.
type Effects struct {
	Early    []Message     // to be sent at once: they promise nothing
	Snapshot *pb.Snapshot  // to be saved, nil for none; the state machine is restored from SnapshotMachine(it) before Apply
	State    *pb.HardState // to be saved with the entries, nil for none
	Entries  []*pb.Entry   // to be saved
	Sync     bool          // State and Entries must be durable before Late is sent
	Late     []Message     // to be sent then
	Apply    []*pb.Entry   // committed: for the state machine, in order
	Reads    []Waiter      // may read when all that is applied
	Members  []Member      // all of them, where they have changed
}

// NewCore makes the node that a log holds. A new node of a new group has a
// snapshot of its first members to save: Bootstrap says it.
func NewCore(c CoreConfig) (*Core, error) {
	c.setDefaults()
	n := &Core{id: MemberID(c.Name), config: c, changes: map[uint64]Waiter{}, snapshots: map[uint64]int64{}}
	if c.Name == "" {
		return nil, errors.New("raft: a node needs a name")
	}
	s := c.Stored.Snapshot
	n.members = members{}
	switch {
	case s != nil:
		list, _, err := readSnapshot(s.GetData())
		if err != nil {
			return nil, err
		}
		n.members.apply(list)
	case c.Join: // until a leader tells who the members are
		known, err := makeMembers(c.Peers)
		if err != nil {
			return nil, err
		}
		delete(known, n.id)
		n.members = known
	default:
		return nil, errors.New("raft: the log of a new node begins with the snapshot that Bootstrap makes")
	}
	n.memory = newMemory(s, c.Stored.State, c.Stored.Entries)
	n.conf = s.GetMetadata().GetConfState()
	n.applied = s.GetMetadata().GetIndex()
	n.pending = newPending(c.PendingMax, c.Nonce)
	if err := n.start(); err != nil {
		return nil, err
	}
	return n, nil
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
	for n := 1; ; n *= 2 {
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
	if c.Nonce == 0 {
		c.Nonce = MemberID(c.Name)
	}
}

// BootstrapState is the hard state that belongs to the snapshot of Bootstrap.
func BootstrapState() *pb.HardState {
	return &pb.HardState{Term: new(uint64(1)), Vote: new(uint64(0)), Commit: new(uint64(1))}
}

// Bootstrap is the snapshot that the log of each member of a new group begins
// with. state is the state machine's own snapshot of its beginning. All members
// must be given the same peers and state.
func Bootstrap(peers map[string]string, state []byte) (*pb.Snapshot, error) {
	m, err := makeMembers(peers)
	if err != nil {
		return nil, err
	}
	conf := &pb.ConfState{}
	for id := range m {
		conf.Voters = append(conf.Voters, id)
	}
	slices.Sort(conf.Voters)
	return &pb.Snapshot{
		Data:     append(appendSnapshotHead(nil, m.list()), state...),
		Metadata: &pb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: conf},
	}, nil
}

// SnapshotMachine is the state machine's part of a snapshot.
func SnapshotMachine(s *pb.Snapshot) ([]byte, error) {
	_, machine, err := readSnapshot(s.GetData())
	return machine, err
}

// start makes the engine, from memory.
func (c *Core) start() (err error) {
	defer c.caught(&err)
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
func (c *Core) caught(err *error) {
	if cause := recover(); cause != nil {
		c.err = fmt.Errorf("%w: %v", ErrEngine, cause)
		*err = c.err
	}
}

// ID is the node's.
func (c *Core) ID() uint64 { return c.id }

// Err is what has ended the node; nil while it lives.
func (c *Core) Err() error { return c.err }

// Tick tells that the time between two ticks has passed.
func (c *Core) Tick() (err error) {
	if c.err != nil {
		return c.err
	}
	defer c.caught(&err)
	c.tick++
	c.node.Tick()
	c.forgetSnapshots()
	return nil
}

// Campaign begins an election without waiting for the timeout.
func (c *Core) Campaign() (err error) {
	if c.err != nil {
		return c.err
	}
	defer c.caught(&err)
	return c.node.Campaign()
}

// Step takes a message of a peer, from its id as the transport knows it. An error
// that matches ErrMessage is the peer's fault: the message is ignored. Others end
// the node.
func (c *Core) Step(from uint64, m *pb.Message) (err error) {
	if c.err != nil {
		return c.err
	}
	defer c.caught(&err)
	if c.members[from].Removed {
		return fmt.Errorf("%w: %q was removed", ErrMessage, c.members[from].Name)
	}
	if err := c.checkMessage(from, m); err != nil {
		if errors.Is(err, ErrLogLost) {
			c.err = err
		}
		return err
	}
	if bug.On(bug.VoteWithoutLogCheck) && (m.GetType() == pb.MsgVote || m.GetType() == pb.MsgPreVote) {
		m = proto.Clone(m).(*pb.Message)
		m.LogTerm, m.Index = new(uint64(math.MaxInt64)), new(uint64(math.MaxInt64))
	}
	if bug.On(bug.TailCutAtTermChange) && m.GetTerm() > c.node.BasicStatus().GetTerm() && (m.GetType() == pb.MsgVote || m.GetType() == pb.MsgApp) {
		return c.cutTail(m)
	}
	_ = c.node.Step(m) // what it refuses is late or lost its meaning, and asked again
	return nil
}

// cutTail is a deliberate bug: what RAST's UpdateTerm does.
func (c *Core) cutTail(m *pb.Message) (err error) {
	status := c.node.BasicStatus()
	if !c.node.HasReady() && status.GetCommit() >= c.memory.first && c.conf != nil {
		c.memory.truncate(status.GetCommit() + 1)
		c.memory.state, c.memory.conf = status.HardState, c.conf
		if err := c.start(); err != nil {
			return err
		}
	}
	_ = c.node.Step(m)
	return nil
}

// Propose asks for a command in the node's own session; w is told its result. An
// update's bytes belong to the Core until then. The number is for Abandon. It
// fails, with nothing proposed, where too many wait, or where the node is no
// leader and does not pass on.
func (c *Core) Propose(kind Kind, update []byte, w Waiter) (number uint64, err error) {
	switch {
	case c.err != nil:
		return 0, c.err
	case c.pending.full():
		return 0, fsm.ErrTooMany
	}
	if err := c.refuses(); err != nil {
		return 0, err
	}
	return c.pending.add(kind, update, w), nil
}

// Full reports whether Propose would return fsm.ErrTooMany.
func (c *Core) Full() bool { return c.pending.full() }

// refuses says why a proposal cannot be taken here.
func (c *Core) refuses() error {
	if c.config.Forward {
		return nil
	}
	s := c.node.BasicStatus()
	if s.RaftState == raft.StateLeader {
		return nil
	}
	return &fsm.NotLeader{Leader: c.members[s.Lead].Name}
}

// ProposeAs asks for an update in a session that fsm.Batch.Open has opened, under
// a number of the client's own. floor is the lowest whose result the client still
// wants.
func (c *Core) ProposeAs(client, sequence, floor uint64, update []byte, w Waiter) error {
	switch {
	case c.err != nil:
		return c.err
	case len(c.foreign.list) >= c.config.PendingMax:
		return fsm.ErrTooMany
	}
	if err := c.refuses(); err != nil {
		return err
	}
	c.foreign.add(client, sequence, floor, update, w)
	return nil
}

// OpenSession asks for a session; w is told its client's number. nonce is drawn
// at random and tells this call from all others.
func (c *Core) OpenSession(nonce uint64, w Waiter) error { return c.ProposeAs(nonce, 0, 0, nil, w) }

// Abandon forgets who waits for a proposal. It reports whether that may be
// applied nevertheless.
func (c *Core) Abandon(number uint64) (mayApply bool) { return c.pending.abandon(number) }

// AbandonAs is Abandon for ProposeAs.
func (c *Core) AbandonAs(client, sequence uint64, w Waiter) (mayApply bool) {
	return c.foreign.abandon(client, sequence, w)
}

// Result takes a result of the state machine.
func (c *Core) Result(client, sequence uint64, a fsm.Applied) {
	p := &c.pending
	switch {
	case sequence == 0 && client == p.nonce:
		if p.client == 0 && a.Err == nil {
			p.client, p.opening = a.Client, false
		}
	case client != p.client:
		c.foreign.answer(client, sequence, a)
	case errors.Is(a.Err, fsm.ErrSessionExpired) && p.isOpen(sequence):
		p.expired(a.Err)
	default:
		p.answer(sequence, a)
	}
}

// Read tells w when the state machine holds all that was committed when Read was
// called.
func (c *Core) Read(w Waiter) error {
	if c.err != nil {
		return c.err
	}
	c.reads.waiting = append(c.reads.waiting, w)
	return nil
}

// TransferLeader asks for another leader: the leader for anybody, others for
// themselves. Whether it came about is seen by who leads.
func (c *Core) TransferLeader(to uint64) (err error) {
	if c.err != nil {
		return c.err
	}
	defer c.caught(&err)
	leads := c.node.BasicStatus().RaftState == raft.StateLeader
	switch m, ok := c.members[to]; {
	case !ok || m.Removed || m.Learner:
		return fmt.Errorf("%w: %x has no vote", ErrMembers, to)
	case c.leader == raft.None, !leads && to != c.id: // the engine would speak in the name of another
		return &fsm.NotLeader{Leader: c.members[c.leader].Name}
	}
	c.node.TransferLeader(to)
	return nil
}

// HasEffects reports whether there is something to do.
func (c *Core) HasEffects() bool {
	if c.err != nil {
		return false
	}
	c.see()
	c.propose()
	return c.err == nil && (c.node.HasReady() || c.readable())
}

// readable reports whether reads wait for nothing but the driver.
func (c *Core) readable() bool {
	for i := range c.reads.rounds {
		if o := &c.reads.rounds[i]; o.index != 0 && o.index <= c.applied {
			return true
		}
	}
	return false
}

// see looks whether the leader has changed, and what may be lost by that or by
// time.
func (c *Core) see() {
	s := c.node.BasicStatus()
	changed := s.GetTerm() != c.term || s.Lead != c.leader
	c.term, c.leader = s.GetTerm(), s.Lead
	if c.leader == raft.None {
		return
	}
	p := &c.pending
	leads := s.RaftState == raft.StateLeader
	patience := int64(retryTimeouts * c.config.ElectionTicks)
	if changed {
		c.failChanges(fmt.Errorf("%w: the leader has changed", fsm.ErrUnknown))
	}
	switch {
	case !leads && !c.config.Forward:
		c.handBack(patience)
	case changed:
		p.again()
		c.foreign.again()
	case leads: // what it has proposed in this term is in its log
	default:
		if p.waitTicks == 0 {
			p.waitTicks = patience
		}
		if p.waits() && c.tick-p.sentTick >= p.waitTicks {
			p.waitTicks = min(2*p.waitTicks, retryTicksMax)
			p.again()
		}
		if c.tick-c.foreign.sentTick >= patience {
			c.foreign.again()
		}
	}
	c.reads.again(func(o *round) bool {
		return o.term != c.term || !leads && c.tick-o.tick >= patience
	})
}

// handBack gives back what a node that leads no more, and passes nothing on, cannot
// propose: at once what it has not proposed, and later what was not answered.
func (c *Core) handBack(patience int64) {
	other := &fsm.NotLeader{Leader: c.members[c.leader].Name}
	var sent error
	if c.tick-max(c.pending.sentTick, c.foreign.sentTick) >= patience {
		sent = fmt.Errorf("%w: %w", fsm.ErrUnknown, other)
	}
	c.pending.fail(other, sent)
	c.foreign.fail(other, sent)
}

// propose hands to the engine what waits for it, where there is a leader.
func (c *Core) propose() {
	if c.leader == raft.None || c.err != nil {
		return
	}
	defer c.caught(new(error))
	for {
		upTo := c.pending.batch(&c.batch, c.config.Now())
		if upTo == 0 || c.node.Propose(slices.Clone(c.batch.Bytes())) != nil {
			break
		}
		c.pending.proposed(upTo, c.term, c.tick)
	}
	for len(c.foreign.keys) > 0 {
		n := c.foreign.batch(&c.batch, c.config.Now())
		if c.batch.Len() > 0 && c.node.Propose(slices.Clone(c.batch.Bytes())) != nil {
			break
		}
		c.foreign.proposed(n, c.tick)
	}
	if len(c.reads.waiting) > 0 {
		key := c.reads.begin(c.config.Nonce, c.term, c.tick)
		if bug.On(bug.ReadFromMasterInfo) && c.leader == c.id {
			c.reads.answered(c.config.Nonce, key, 1)
			return
		}
		c.node.ReadIndex(key)
	}
}

// Effects is what is to be done now. The driver calls Advance when it is.
func (c *Core) Effects() Effects {
	e := &c.effects
	*e = Effects{Early: e.Early[:0], Late: e.Late[:0], Apply: e.Apply[:0], Reads: e.Reads[:0]}
	if c.err != nil {
		return *e
	}
	defer c.caught(new(error))
	c.inEffects = true
	rd := c.node.Ready()
	c.ready = rd
	for _, m := range rd.Messages {
		if m.GetType() == pb.MsgSnap {
			c.snapshots[m.GetTo()] = c.tick
		}
		if promises(m) && !bug.On(bug.AcknowledgedBeforeSync) {
			e.Late = append(e.Late, Message{m.GetTo(), m})
		} else {
			e.Early = append(e.Early, Message{m.GetTo(), m})
		}
	}
	if !raft.IsEmptySnap(rd.Snapshot) {
		e.Snapshot = rd.Snapshot
		c.install(rd.Snapshot)
	}
	if !raft.IsEmptyHardState(rd.HardState) {
		e.State = rd.HardState
	}
	e.Entries, e.Sync = rd.Entries, rd.MustSync
	committed := rd.CommittedEntries
	if bug.On(bug.AppliedBeforeCommit) {
		committed = c.early(rd)
	}
	for _, entry := range committed {
		c.commit(entry)
	}
	for _, r := range rd.ReadStates {
		c.reads.answered(c.config.Nonce, r.RequestCtx, r.Index)
	}
	e.Reads = c.reads.ready(c.applied, e.Reads)
	return *e
}

// early is a deliberate bug: what is saved counts as committed.
func (c *Core) early(rd raft.Ready) (list []*pb.Entry) {
	for _, entry := range slices.Concat(rd.CommittedEntries, rd.Entries) {
		if entry.GetIndex() == c.applied+uint64(len(list))+1 {
			list = append(list, entry)
		}
	}
	return list
}

// commit takes a committed entry: what changes the members is the Core's.
func (c *Core) commit(entry *pb.Entry) {
	c.applied = entry.GetIndex()
	if entry.GetType() == pb.EntryNormal {
		if len(entry.Data) > 0 {
			c.effects.Apply = append(c.effects.Apply, entry)
		}
		return
	}
	c.change(entry)
}

// install takes a leader's snapshot.
func (c *Core) install(s *pb.Snapshot) {
	list, _, err := readSnapshot(s.GetData()) // checked when it came
	if err != nil {
		c.err = err
		return
	}
	c.members = members{}
	c.members.apply(list)
	c.conf = s.GetMetadata().GetConfState()
	c.applied = s.GetMetadata().GetIndex()
	c.effects.Members = c.members.list()
	c.pending.again() // results of what was proposed may lie within: the session has them
	c.foreign.again()
}

// Advance tells that the Effects were carried out.
func (c *Core) Advance() (err error) {
	if c.err != nil || !c.inEffects {
		return c.err
	}
	defer c.caught(&err)
	c.inEffects = false
	rd := c.ready
	c.ready = raft.Ready{}
	if !raft.IsEmptySnap(rd.Snapshot) {
		c.memory.restore(rd.Snapshot)
	}
	if !raft.IsEmptyHardState(rd.HardState) {
		c.memory.state = rd.HardState
	}
	c.memory.append(rd.Entries)
	c.node.Advance(rd)
	if c.removed {
		c.err = ErrRemoved
	}
	return c.err
}

// WantsSnapshot reports whether enough was applied since the last snapshot.
func (c *Core) WantsSnapshot() bool {
	since := c.applied - c.memory.snapshot.GetMetadata().GetIndex()
	return c.err == nil && since > 0 && (since >= c.config.SnapshotEvery || c.memory.wanted || c.memory.bytes >= snapshotBytes+trailingBytesMax)
}

// Snapshot makes a snapshot of what is applied; appendState appends the state
// machine's part of it. The driver saves it, and calls Compact then.
func (c *Core) Snapshot(appendState func([]byte) ([]byte, error)) (*pb.Snapshot, error) {
	if c.err != nil {
		return nil, c.err
	}
	term, err := c.memory.Term(c.applied)
	if err != nil {
		return nil, fmt.Errorf("raft: a snapshot at %d: %w", c.applied, err)
	}
	data, err := appendState(appendSnapshotHead(nil, c.members.list()))
	if err != nil {
		return nil, fmt.Errorf("raft: a snapshot at %d: %w", c.applied, err)
	}
	return &pb.Snapshot{
		Data:     data,
		Metadata: &pb.SnapshotMetadata{Index: new(c.applied), Term: new(term), ConfState: c.conf},
	}, nil
}

// Compact forgets the entries that a saved snapshot holds, but for the last ones,
// which a follower that is a little late still gets.
func (c *Core) Compact(s *pb.Snapshot) {
	index := s.GetMetadata().GetIndex()
	if index <= c.memory.snapshot.GetMetadata().GetIndex() {
		return
	}
	c.memory.snapshot, c.memory.wanted = s, false
	to := index
	for bytes := 0; to > c.memory.first && index-to < c.config.Trailing; to-- {
		if bytes += len(c.memory.entries[to-c.memory.first-1].Data); bytes > trailingBytesMax {
			break
		}
	}
	c.memory.compact(to)
}

// Fail ends all that wait, when the node stops.
func (c *Core) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
	unknown := fmt.Errorf("%w: %w", fsm.ErrUnknown, err)
	c.pending.fail(err, unknown)
	c.foreign.fail(err, unknown)
	c.reads.fail(err)
	c.failChanges(unknown)
}
