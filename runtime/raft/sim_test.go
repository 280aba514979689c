package raft_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/cryptotest"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

// The simulation runs the nodes of a group, their disks, the network between them
// and some clients in one goroutine and in virtual time; its unit is a
// millisecond. All chance comes from one seed.
const (
	tickTime     = 10 // from one tick of a node to the next
	electionTime = 10 * tickTime
	chaosTime    = 6_000
	quietTime    = 6_000 // after it, without faults, within which all must be as one
)

// world is the whole of a simulation.
type world struct {
	t        *testing.T
	rng      *rand.Rand
	now      int64
	net      *transport.Network[*pb.Message]
	nodes    []*node
	clients  []*client
	history  history
	quiet    bool // no more faults
	sessions int  // that a state machine remembers
	trace    uint64
	counts   map[string]int
	failure  error

	leaders map[uint64]uint64 // term -> id
	log     map[uint64]entry  // index -> what was applied there
	newest  uint64            // index applied somewhere
}

type entry struct {
	term uint64
	sum  uint64
}

// node is a machine with its disk; core is nil while it is down.
type node struct {
	w         *world
	name      string
	number    int
	id        uint64
	disk      *wal.Disk
	log       wal.Log
	core      *raft.Core
	machine   *fsm.Replicated[lists, appendTo, *appendTo]
	member    bool // of the group, or on the way in
	gone      bool // removed for good
	nextTick  int64
	slowness  int64 // of its clock
	asleep    int64 // until when it does nothing: it is paused, or its disk hangs
	restart   int64
	inbox     []inboxMessage
	starts    uint64
	skew      int64 // of its wall clock
	atApplied uint64
	stirred   bool // it may have something to do
}

type inboxMessage struct {
	from uint64
	m    *pb.Message
}

const simPeers = 3 // in most runs

// newWorld makes a group of three, five or one nodes, and one or two more machines
// that may be added to it.
func newWorld(t *testing.T, seed uint64) *world { return newWorldOf(t, seed, 4) }

// newWorldOf is newWorld with a number of clients.
func newWorldOf(t *testing.T, seed uint64, clients int) *world {
	cryptotest.SetGlobalRandom(t, seed) // the engine draws its election timeouts there
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), leaders: map[uint64]uint64{}, log: map[uint64]entry{}, counts: map[string]int{},
	}
	w.net = transport.NewNetwork[*pb.Message](rand.New(rand.NewPCG(seed, 2)), transport.Faults{DelayMin: 1, DelayMax: 5})
	w.sessions = 7 + w.rng.IntN(8)
	members := simPeers
	switch w.rng.IntN(8) {
	case 0, 1:
		members = 5
	case 2:
		members = 1
	}
	for i := range members + 2 {
		n := &node{w: w, name: fmt.Sprintf("n%d", i+1), number: i, disk: wal.NewDisk(seed + uint64(i)<<32), member: i < members}
		n.id = raft.MemberID(n.name)
		w.nodes = append(w.nodes, n)
	}
	for _, n := range w.nodes[:members] {
		n.start()
	}
	for i := range clients {
		w.clients = append(w.clients, &client{w: w, number: i})
	}
	return w
}

func (w *world) peers() map[string]string {
	peers := map[string]string{}
	for _, n := range w.nodes {
		if n.number < len(w.nodes)-2 {
			peers[n.name] = ""
		}
	}
	return peers
}

func (w *world) count(what string) { w.counts[what]++ }

// note puts what happened into the trace, by which two runs are compared.
func (w *world) note(values ...any) {
	h := fnv.New64a()
	fmt.Fprint(h, w.trace, w.now, values)
	w.trace = h.Sum64()
}

func (w *world) fail(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf("at %d ms: "+format, append([]any{w.now}, args...)...)
	}
}

var simID = wal.Identity{Topology: "simulation", Group: "lists"}

// start opens the disk and makes the node that it holds.
func (n *node) start() {
	id := simID
	id.Node = n.id
	log, stored, err := n.disk.Open(id, wal.Options{})
	if err != nil {
		n.w.fail("%s does not open its log: %v", n.name, err)
		return
	}
	n.log, n.starts = log, n.starts+1
	n.machine = fsm.NewReplicated[lists, appendTo](listsCodec, appendCodec, fsm.Options{Sessions: n.w.sessions})
	join := n.number >= len(n.w.nodes)-2
	if stored.Snapshot == nil && !join {
		state, err := n.machine.AppendSnapshot(nil)
		if err != nil {
			n.w.fail("the first snapshot: %v", err)
			return
		}
		stored.Snapshot, err = raft.Bootstrap(n.w.peers(), state)
		stored.State = raft.BootstrapState()
		if err = errors.Join(err, log.Save(stored.State, nil, true), log.SaveSnapshot(stored.Snapshot)); err != nil {
			n.w.fail("bootstrap: %v", err)
			return
		}
	}
	if stored.Snapshot != nil {
		state, err := raft.SnapshotMachine(stored.Snapshot)
		if err = errors.Join(err, n.machine.Restore(state)); err != nil {
			n.w.fail("%s restores: %v", n.name, err)
			return
		}
	}
	n.atApplied = stored.Snapshot.GetMetadata().GetIndex()
	rng := n.w.rng
	n.core, err = raft.NewCore(raft.CoreConfig{
		Name: n.name, Join: join, Forward: rng.IntN(4) > 0, PendingMax: 64,
		SnapshotEvery: uint64(5 + rng.IntN(60)), Trailing: uint64(1 + rng.IntN(20)),
		Nonce: n.id ^ n.starts<<32 | 1, Stored: stored,
		Now: func() int64 { return n.w.now + n.skew },
	})
	if err != nil {
		n.w.fail("%s starts: %v", n.name, err)
		return
	}
	n.nextTick, n.asleep = n.w.now+rng.Int64N(tickTime), 0
	n.w.note("start", n.name)
}

// crash ends the node, and loses what its disk had not synced.
func (n *node) crash(why string) {
	if n.core == nil {
		return
	}
	n.w.count(why)
	n.w.note("crash", n.name, why)
	n.core.Fail(errors.New("crashed"))
	n.disk.Crash()
	n.core, n.log, n.inbox = nil, nil, nil
	n.restart = n.w.now + 20 + n.w.rng.Int64N(6*electionTime)
}

// stop is what a node does that ends by itself.
func (n *node) stop(err error) {
	n.w.note("stop", n.name, err.Error())
	if errors.Is(err, raft.ErrRemoved) {
		n.gone, n.member = true, false
	} else if errors.Is(err, raft.ErrEngine) || errors.Is(err, raft.ErrLogLost) || errors.Is(err, fsm.ErrDamaged) || errors.Is(err, fsm.ErrDiverged) {
		n.w.fail("%s: %w", n.name, err)
	}
	n.crash("node stopped")
	if n.gone {
		n.restart = 0
	}
}

// run lets the node do what there is to do, up to the first point where it
// crashes.
func (n *node) run() {
	w := n.w
	for _, in := range n.inbox {
		if err := n.core.Step(in.from, in.m); err != nil && !errors.Is(err, raft.ErrMessage) {
			n.stop(err)
			return
		}
	}
	n.inbox = n.inbox[:0]
	for n.core.HasEffects() {
		e := n.core.Effects()
		if !n.carryOut(&e) {
			return
		}
		if err := n.core.Advance(); err != nil {
			n.look()
			n.stop(err)
			return
		}
	}
	if n.core.WantsSnapshot() && !n.takeSnapshot() {
		return
	}
	if err := n.core.Err(); err != nil {
		n.stop(err)
		return
	}
	n.look()
	w.trace = w.trace*31 + n.atApplied
}

// carryOut does what the node wants, step by step; false: it is down.
func (n *node) carryOut(e *raft.Effects) bool {
	w := n.w
	steps := []func() error{
		func() error { n.send(e.Early); return nil },
		func() error {
			if e.Snapshot == nil {
				return nil
			}
			w.count("snapshot installed")
			return n.log.SaveSnapshot(e.Snapshot)
		},
		func() error {
			if e.State == nil && len(e.Entries) == 0 {
				return nil
			}
			return n.log.Save(e.State, e.Entries, e.Sync)
		},
		func() error { n.send(e.Late); return nil },
		func() error { return n.apply(e) },
		func() error {
			for _, reader := range e.Reads {
				reader.Done(fsm.Applied{})
			}
			return nil
		},
	}
	for _, step := range steps {
		if !w.quiet && w.rng.IntN(6000) == 0 {
			n.crash("crash between two steps")
			return false
		}
		if err := step(); err != nil {
			n.stop(err)
			return false
		}
	}
	return true
}

func (n *node) send(list []raft.Message) {
	for _, m := range list {
		for _, to := range n.w.nodes {
			if to.id == m.To {
				n.w.net.Send(n.w.now, n.number, to.number, proto.Clone(m.Message).(*pb.Message))
			}
		}
	}
}

// apply changes the state, and holds what is applied against what others have.
func (n *node) apply(e *raft.Effects) error {
	if e.Snapshot != nil {
		state, err := raft.SnapshotMachine(e.Snapshot)
		if err != nil {
			return err
		}
		if err := n.machine.Restore(state); err != nil {
			return err
		}
		n.atApplied = e.Snapshot.GetMetadata().GetIndex()
	}
	for _, o := range e.Apply {
		h := fnv.New64a()
		_, _ = h.Write(o.Data)
		got := entry{o.GetTerm(), h.Sum64()}
		if want, ok := n.w.log[o.GetIndex()]; ok && want != got {
			n.w.fail("%s applies another entry at %d than others did", n.name, o.GetIndex())
		}
		n.w.log[o.GetIndex()] = got
		if o.GetIndex() <= n.atApplied {
			n.w.fail("%s applies %d after %d", n.name, o.GetIndex(), n.atApplied)
		}
		n.atApplied = o.GetIndex()
		n.w.newest = max(n.w.newest, n.atApplied)
		if err := n.machine.Apply(o.GetIndex(), o.GetTerm(), o.Data, n.core.Result); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) takeSnapshot() bool {
	n.w.count("snapshot")
	s, err := n.core.Snapshot(n.machine.AppendSnapshot)
	if err == nil {
		err = n.log.SaveSnapshot(s)
	}
	if err != nil {
		n.stop(err)
		return false
	}
	n.core.Compact(s)
	return true
}

// look holds the node's view against the others': one leader a term.
func (n *node) look() {
	term, leads := n.core.Leads()
	if !leads {
		return
	}
	if other, ok := n.w.leaders[term]; ok && other != n.id {
		n.w.fail("term %d has two leaders", term)
	}
	if _, ok := n.w.leaders[term]; !ok {
		n.w.leaders[term] = n.id
		n.w.count("leader")
	}
}

// up reports whether the node runs and is awake.
func (n *node) up() bool { return n.core != nil && n.asleep <= n.w.now }

// step is a millisecond.
func (w *world) step() {
	w.now++
	for {
		from, to, m, ok := w.net.Deliver(w.now)
		if !ok {
			break
		}
		if n := w.nodes[to]; n.core != nil && len(n.inbox) < 1000 {
			n.inbox = append(n.inbox, inboxMessage{w.nodes[from].id, proto.Clone(m).(*pb.Message)})
		}
	}
	for _, n := range w.nodes {
		if n.core == nil && n.restart > 0 && n.restart <= w.now && n.member {
			n.restart = 0
			n.start()
		}
		if !n.up() {
			continue
		}
		if n.nextTick <= w.now {
			n.nextTick, n.stirred = w.now+tickTime+n.slowness, true
			if err := n.core.Tick(); err != nil {
				n.stop(err)
				continue
			}
		}
		if n.stirred || len(n.inbox) > 0 {
			n.stirred = false
			n.run()
		}
	}
	for _, c := range w.clients {
		c.step()
	}
	if !w.quiet {
		w.disturb()
	}
}

// simulate runs a seed. The error says what was wrong.
func simulate(t *testing.T, seed uint64) (w *world, err error) {
	w = newWorld(t, seed)
	for w.now < chaosTime && w.failure == nil {
		w.step()
	}
	w.calm()
	for w.now < chaosTime+quietTime && w.failure == nil {
		w.step()
		if w.now > chaosTime+quietTime/4 && w.settled() {
			break
		}
	}
	if w.failure == nil {
		w.checkEnd()
	}
	return w, w.failure
}

// settled reports whether there is a leader, all is applied everywhere, and nobody
// waits.
func (w *world) settled() bool {
	leader := false
	for _, n := range w.nodes {
		if !n.member {
			continue
		}
		if n.core == nil {
			return false
		}
		s := n.core.Status()
		leader = leader || s.Role == "leader"
		if (s.Pending > 0 || n.machine.Applied() < w.newest) && w.isMember(n) { // who was removed, and cut off, does not hear of it
			return false
		}
	}
	for _, c := range w.clients {
		if c.busy() {
			return false
		}
	}
	return leader
}

// isMember reports whether the leader counts n among its members.
func (w *world) isMember(n *node) bool {
	for _, l := range w.nodes {
		if l.core == nil {
			continue
		}
		if s := l.core.Status(); s.Role == "leader" {
			return slices.ContainsFunc(s.Members, func(m raft.MemberStatus) bool { return m.ID == n.id && !m.Removed })
		}
	}
	return false
}

// checkEnd holds what the nodes have at the end against each other and against
// what was acknowledged.
func (w *world) checkEnd() {
	if !w.settled() {
		w.fail("the group does not come to rest: %s", w.describe())
		return
	}
	var want *lists
	var of string
	for _, n := range w.nodes {
		if n.core == nil || !w.isMember(n) {
			continue
		}
		n.machine.View(func(s *lists) {
			if want == nil {
				want, of = s.clone(), n.name
			} else if !want.equal(s) {
				w.fail("%s holds another state than %s:\n%v\n%v", n.name, of, s.items, want.items)
			}
		})
	}
	if want != nil {
		w.history.check(w, want)
	}
}

func (w *world) describe() (text string) {
	for _, n := range w.nodes {
		if n.core == nil {
			text += fmt.Sprintf("\n%s down, member %t", n.name, n.member)
			continue
		}
		s := n.core.Status()
		text += fmt.Sprintf("\n%s %s of term %d (leader %s), applied %d commit %d last %d snapshot %d, pending %d, members %v", n.name, s.Role, s.Term, s.Leader, s.Applied, s.Commit, s.Last, s.Snapshot, s.Pending, s.Members)
	}
	for _, c := range w.clients {
		text += fmt.Sprintf("\nclient %d busy %t", c.number, c.busy())
	}
	return text
}

func sortedCounts(counts map[string]int) (text string) {
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		text += fmt.Sprintf("\n%8d %s", counts[what], what)
	}
	return text
}
