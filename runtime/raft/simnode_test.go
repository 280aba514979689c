package raft_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"log/slog"
	"maps"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

// node is a machine with its disk; raft is nil while it is down. It is a raft.Node
// whose loops are coroutines, and whose log, transport and clock are the world's.
type node struct {
	w       *world
	name    string
	number  int
	id      uint64
	disk    *memoryDisk
	raft    *raft.Node
	core    *raft.Core
	machine *watched
	member  bool   // of the group, or on the way in
	gone    bool   // removed, and has ended
	renamed string // its name from the next start on
	lost    bool   // its disk was emptied, and it is not a member again yet
	joins   bool
	peers   map[string]string // that it is configured with
	repair  func()            // sets right what is wrong with them, at the next start or in the end

	loop, keeper *coroutine
	courier      *coroutine
	running      *coroutine // of the three
	receive      func(from string, payloads [][]byte)
	failing      error // all that the node asks of its machine fails: it crashes within a turn
	ended        error // what its loop has ended with

	nextTick int64
	ticks    bool    // a tick is due
	slowness int64   // of its clock
	uptime   float64 // by that clock, in ms
	asleep   int64   // until when it does nothing: it is paused
	busy     int64   // until when its keeper does nothing
	restart  int64
	starts   uint64
	skew     int64  // of its wall clock, in ns
	wrong    uint64 // index from which on its updates do something else; 0: never
	differs  uint64 // index of the first that did
}

// coroutine is a loop of a node. It runs while the world resumes it, up to where it
// waits.
type coroutine struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	until int64 // when it is to go on, where it is within a turn
}

func newCoroutine(body func(c *coroutine)) *coroutine {
	c := new(coroutine)
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		body(c)
	})
	c.next() // up to the first wait
	return c
}

// wait lets others run. It returns false when the coroutine is to end.
func (c *coroutine) wait(until int64) bool {
	c.until = until
	return c.yield(struct{}{})
}

var simID = wal.Identity{Topology: "simulation", Group: "lists"}

// identity is that of the node's log.
func (n *node) identity() wal.Identity {
	id := simID
	id.Node = n.id
	return id
}

// simDisk is the disk of a node, at whose calls it may crash.
type simDisk struct {
	*memoryDisk
	n *node
}

func (d *simDisk) SetRecord(r raft.Record) error {
	if err := d.n.pass(true); err != nil { // it is not there yet
		return err
	}
	return errors.Join(d.memoryDisk.SetRecord(r), d.n.pass(false))
}

func (d *simDisk) Open(id wal.Identity) (wal.Log, wal.Stored, error) {
	if err := d.n.pass(true); err != nil {
		return nil, wal.Stored{}, err
	}
	log, stored, err := d.memoryDisk.Open(id)
	if err != nil && d.n.failing == nil {
		d.n.w.fail("%s does not open its log: %v", d.n.name, err)
	}
	return &simLog{log, d.n}, stored, errors.Join(err, d.n.pass(false))
}

func (d *simDisk) RemoveLog() error {
	d.n.w.count("unused log removed")
	return errors.Join(d.memoryDisk.RemoveLog(), d.n.pass(false))
}

// snapshot is the node's newest.
func (n *node) snapshot() *pb.Snapshot { return n.core.Snapshot() }

var errCrashed = errors.New("crashed")

// start opens the disk and makes the node that it holds.
func (n *node) start() {
	n.starts++
	if n.renamed != "" {
		n.w.count("started under another name")
		n.name, n.renamed = n.renamed, ""
		if n.peers = maps.Clone(n.peers); n.peers[n.name] == "" {
			n.peers[n.name] = ""
		}
	}
	if n.repair != nil && n.starts > 1 {
		n.repair()
		n.repair = nil
	}
	n.machine = &watched{fsm.NewReplicated(n.definition(), fsm.Options{Sessions: n.w.sessions}), n}
	n.failing, n.ended = nil, nil
	rng := n.w.rng
	every, trailing, forward := uint64(5+rng.IntN(60)), uint64(1+rng.IntN(20)), rng.IntN(4) > 0
	sums := uint64(16 + rng.IntN(60))
	if n.w.tell != nil {
		every, trailing, forward, sums = 1<<20, 1, true, 1<<20
	}
	if n.w.asking {
		trailing = 1 << 20 // nobody gets a state from another
	}
	var err error
	n.raft, err = raft.NewNode(raft.NodeConfig{
		Core: raft.CoreConfig{
			Name: n.name, Peers: n.peers, Join: n.joins, Forward: forward, PendingMax: 64,
			SnapshotEvery: every, Trailing: trailing,
			Nonce:  raft.MemberID(n.name) ^ n.starts<<32 | 1,
			Now:    func() int64 { return simTime(n.w.now) + n.skew },
			Uptime: func() time.Duration { return time.Duration(n.uptime * float64(time.Millisecond)) }, LeaseTime: electionTime / 2 * time.Millisecond,
		},
		Prefer: n.w.prefer, Topology: simID.Topology, GroupName: simID.Group, Disk: &simDisk{n.disk, n}, Machine: n.machine, Transport: &simTransport{n: n}, Group: 1,
		ChecksumEvery: sums,
		Tick:          tickTime * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		if n.failing == nil {
			n.w.fail("%s starts: %v", n.name, err)
		}
		n.w.count("crash at the start")
		n.raft = nil
		n.disk.Crash()
		n.restart = n.w.now + 1 + n.w.rng.Int64N(electionTime)
		return
	}
	n.core = n.raft.Core()
	n.id = n.core.ID()
	n.loop, n.keeper, n.courier = newCoroutine(n.runLoop), newCoroutine(n.runKeeper), newCoroutine(n.runCourier)
	if n.w.tell == nil {
		n.raft.PartsOf(1 + rng.IntN(60))
	}
	n.nextTick, n.asleep, n.busy = n.w.now+rng.Int64N(tickTime), 0, 0
	n.w.note("start", n.name)
	n.raft.Begin()
}

// simTime is a time of the simulation, of which all clocks show so many nanoseconds at
// its beginning.
func simTime(ms int64) int64 { return 1_700_000_000_000_000_000 + ms*int64(time.Millisecond) }

// definition is what the node's state machine is made of.
func (n *node) definition() fsm.Definition[lists, appendTo, struct{}] {
	d := listsDefinition
	if n.wrong != 0 || n.w.timed != nil {
		d.UpdateAt = func(a *appendTo, l *lists, e fsm.Entry) (struct{}, error) {
			if n.w.timed != nil {
				n.w.timed(n, e)
			}
			err := a.Update(l)
			if err == nil && n.wrong != 0 && e.Index >= n.wrong {
				l.items[0] = append(l.items[0], 1<<60)
				if n.differs == 0 {
					n.differs = e.Index
				}
			}
			return struct{}{}, err
		}
	}
	return d
}

// runLoop is what Node.run does.
func (n *node) runLoop(c *coroutine) {
	for c.wait(0) {
		tick := n.ticks
		n.ticks = false
		if n.ended = n.raft.Turn(tick); n.ended != nil {
			return
		}
		n.raft.Release()
	}
}

// runKeeper is what its keeper does.
func (n *node) runKeeper(c *coroutine) {
	for c.wait(0) {
		for n.raft.KeeperTurn() && n.failing == nil {
		}
	}
}

// runCourier is what its courier does.
func (n *node) runCourier(c *coroutine) {
	for c.wait(0) && n.raft.CourierTurn() {
	}
}

// up reports whether the node runs and is awake.
func (n *node) up() bool { return n.raft != nil && n.asleep <= n.w.now }

// run lets the node's loops do what there is to do, by turns.
func (n *node) run() {
	for range 20 {
		turns := []func() bool{n.resumeLoop, n.resumeKeeper, n.resumeCourier}
		n.w.rng.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		ran := false
		for _, resume := range turns {
			ran = resume() || ran
		}
		switch {
		case n.failing != nil:
			n.crash("crash within a turn")
			return
		case n.ended != nil:
			n.stop(n.ended)
			return
		case !ran:
			n.look()
			return
		}
	}
	n.look()
}

func (n *node) resumeLoop() bool {
	c := n.loop
	within := c.until != 0
	if n.failing != nil || n.ended != nil || c.until > n.w.now || !within && !n.ticks && !n.raft.Woken() {
		return false
	}
	n.resume(c)
	return true
}

func (n *node) resumeKeeper() bool {
	c := n.keeper
	within := c.until != 0
	if n.failing != nil || n.busy > n.w.now || c.until > n.w.now || !within && !n.raft.KeeperWoken() {
		return false
	}
	n.resume(c)
	return true
}

func (n *node) resumeCourier() bool {
	c := n.courier
	within := c.until != 0
	if n.failing != nil || c.until > n.w.now || !within && !n.raft.CourierWoken() {
		return false
	}
	n.resume(c)
	return true
}

func (n *node) resume(c *coroutine) {
	n.running = c
	c.next()
	n.running = nil
}

// pass is a moment in which the node may crash, or wait for its disk.
func (n *node) pass(disk bool) error {
	w := n.w
	if n.failing == nil && !w.quiet && w.rng.IntN(6000) == 0 {
		n.failing = errCrashed
	}
	if n.failing != nil || !disk || n.running == nil { // it is being made
		return n.failing
	}
	if !w.quiet && w.rng.IntN(8) == 0 && !n.running.wait(w.now+1+w.rng.Int64N(4)) {
		return errCrashed
	}
	for n.disk.Hung() {
		if !n.running.wait(w.now + 1) {
			return errCrashed
		}
	}
	return n.failing
}

// simLog is the log of a node, in which it may crash before and after each call.
type simLog struct {
	wal.Log
	n *node
}

func (l *simLog) Save(state *pb.HardState, entries []*pb.Entry, sync bool) error {
	l.n.w.saysSave(l.n, state, entries, sync)
	return errors.Join(l.n.pass(true), l.Log.Save(state, entries, sync), l.n.pass(false))
}

func (l *simLog) SaveSnapshot(s *pb.Snapshot) error {
	l.n.w.says("%s saves snapshot %d", l.n.name, s.GetMetadata().GetIndex())
	return errors.Join(l.n.pass(true), l.Log.SaveSnapshot(s), l.n.pass(false))
}

func (l *simLog) CreateSnapshot() (wal.SnapshotWriter, error) {
	w, err := l.Log.CreateSnapshot()
	return &simWriter{w, l.n}, errors.Join(err, l.n.pass(true))
}

// simWriter is the body of a snapshot that a node writes.
type simWriter struct {
	wal.SnapshotWriter
	n *node
}

func (w *simWriter) Write(b []byte) (int, error) {
	if err := w.n.pass(true); err != nil {
		return 0, err
	}
	return w.SnapshotWriter.Write(b)
}

func (w *simWriter) Seal(s *pb.Snapshot) error {
	return errors.Join(w.n.pass(true), w.SnapshotWriter.Seal(s), w.n.pass(false))
}

func (w *simWriter) Commit(s *pb.Snapshot) error {
	w.n.w.says("%s saves snapshot %d", w.n.name, s.GetMetadata().GetIndex())
	return errors.Join(w.n.pass(true), w.SnapshotWriter.Commit(s), w.n.pass(false))
}

// simTransport is the network as a node sees it.
type simTransport struct {
	transport.Transport
	n *node
}

func (t *simTransport) Send(to string, messages ...transport.Message) {
	for _, other := range t.n.w.nodes {
		if other.name != to {
			continue
		}
		for _, m := range messages {
			if t.n.pass(false) == nil {
				t.n.w.saysMessage(t.n.name, to, m.Payload)
				t.n.w.net.Send(t.n.w.now, t.n.number, other.number, m.Payload)
			}
		}
	}
}

func (t *simTransport) Handle(_ uint64, receive func(from string, payloads [][]byte)) {
	t.n.receive = receive
}

func (t *simTransport) PeerAddress(name string) (string, bool) { return name, true }
func (t *simTransport) SetPeer(string, string)                 {}
func (t *simTransport) RemovePeer(string)                      {}

// crash ends the node, and loses what its disk had not synced.
func (n *node) crash(why string) {
	if n.raft == nil {
		return
	}
	n.w.count(why)
	n.w.note("crash", n.name, why)
	n.end(errCrashed)
	n.restart = n.w.now + 20 + n.w.rng.Int64N(6*electionTime)
}

// end switches the machine off.
func (n *node) end(err error) {
	n.failing = err
	n.disk.Crash()
	n.loop.stop()
	n.keeper.stop()
	n.courier.stop()
	n.raft.End(err)
	n.raft.KeeperTurn() // tells the readers
	n.raft.CourierTurn()
	n.raft, n.core, n.receive = nil, nil, nil
}

// stop is what a node does that ends by itself.
func (n *node) stop(err error) {
	n.w.saysEnd(n, err)
	n.w.note("stop", n.name, err.Error())
	if errors.Is(err, raft.ErrRemoved) {
		n.gone, n.member = true, false
	} else if errors.Is(err, raft.ErrLogLost) && n.lost {
		n.w.count("lost log noticed")
	} else if n.w.tell == nil && (errors.Is(err, raft.ErrEngine) || errors.Is(err, raft.ErrLogLost) || errors.Is(err, raft.ErrConflict) || errors.Is(err, fsm.ErrDamaged) || errors.Is(err, fsm.ErrDiverged) || n.wrong == 0 && errors.Is(err, fsm.ErrStateDiffers) || errors.Is(err, wal.ErrInvalid)) {
		n.w.fail("%s: %w", n.name, err)
	}
	n.crash("node stopped")
	if n.gone {
		n.restart = 0
	}
}

// renames is which of all changes of names has made a name; 0: none.
func renames(name string) (n int) {
	_, _ = fmt.Sscanf(name, "m%d", &n) // others are the names that nodes begin with
	return n
}

// look holds the node's view against the others': one leader a term.
func (n *node) look() {
	if n.core == nil {
		return
	}
	for _, m := range n.core.Status().Members {
		if m.ID == n.id && renames(m.Name) > renames(n.name) && n.loop.until == 0 { // it is saved; it may have had others in between
			n.renamed = m.Name
		}
	}
	if n.lost && len(n.core.Status().Members) > 0 {
		n.w.count("lost node is a member again")
		n.lost = false
	}
	term, leads := n.core.Leads()
	if !leads {
		return
	}
	w, at := n.w, rule{n.raft.GroupID(), term}
	other, ok := w.leaders[at]
	switch {
	case ok && other != n.id:
		w.fail("term %d has two leaders", term)
	case !ok && w.ruling != 0 && w.ruling != at.group && w.tell == nil:
		w.fail("two groups have leaders: %s", w.describe())
	case !ok:
		w.leaders[at], w.ruling = n.id, at.group
		w.count("leader")
	}
}

// watched is a state machine that holds what is applied against what others have.
type watched struct {
	*fsm.Replicated[lists, appendTo, struct{}]
	n *node
}

func (m *watched) Apply(index, term uint64, data []byte, result func(client, sequence uint64, a fsm.Applied)) error {
	w := m.n.w
	if m.n.failing != nil {
		return m.n.failing
	}
	h := fnv.New64a()
	_, _ = h.Write(data)
	got := entry{term, h.Sum64()}
	if want, ok := w.log[index]; ok && want != got {
		w.fail("%s applies another entry at %d than others did", m.n.name, index)
	}
	w.log[index] = got
	if at := m.Applied(); index <= at {
		w.fail("%s applies %d after %d", m.n.name, index, at)
	}
	w.newest = max(w.newest, index)
	w.trace = w.trace*31 + index
	w.says("%s applies %d", m.n.name, index)
	return m.Replicated.Apply(index, term, data, result)
}

// Notes and Description say nothing in a transcript, which is about something else.
func (m *watched) Notes(node, every uint64) (n fsm.Notes) {
	if m.n.w.tell == nil {
		n = m.Replicated.Notes(node, every)
	}
	return n
}

func (m *watched) Description() (text string) {
	if m.n.w.tell == nil {
		text = m.Replicated.Description()
	}
	return text
}

func (m *watched) Snapshot() (write func(io.Writer) error, frozen bool, err error) {
	m.n.w.count("snapshot")
	write, frozen, err = m.Replicated.Snapshot()
	if err != nil || m.n.w.tell != nil || m.n.w.rng.IntN(2) == 0 {
		return write, frozen, err
	}
	m.n.w.count("frozen state")
	var b bytes.Buffer
	err = write(&b)
	return func(w io.Writer) error { _, err := w.Write(b.Bytes()); return err }, true, err
}

func (m *watched) Prepare(r io.Reader) (install func(), err error) {
	state, err := m.Replicated.Prepare(r)
	return func() {
		m.n.w.count("restore")
		m.n.w.says("%s takes the state of a snapshot", m.n.name)
		state()
	}, err
}
