package raft_test

import (
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

// node is a host with its disk; raft is nil while the host is down. It is a raft.Node whose loops
// are coroutines. Its log, transport and clock belong to the world.
type node struct {
	w       *world
	name    string
	number  int
	id      uint64
	disk    *memoryDisk
	raft    *raft.Node
	core    *raft.Core
	machine *comparingMachine
	member  bool   // is a member, or was started to become one
	removed bool   // was removed from the group, and has stopped
	renamed string // name from the next start on; "": unchanged
	lost    bool   // the disk was emptied, and the node is not a member again yet
	joins   bool
	peers   map[string]string // configured peers
	repair  func()            // corrects wrong peers, at the next start or when the faults end; nil: nothing to correct

	loop, applier *coroutine
	snapshotter   *coroutine
	running       *coroutine // the coroutine that runs; nil: none
	receive       func(from string, payloads [][]byte)
	failing       error // the error of all calls of disk and network after a crash within a turn
	ended         error // error with which the loop has ended

	nextTick    int64
	ticks       bool    // a tick is due
	slowness    int64   // extra milliseconds per tick
	uptime      float64 // by the node's clock, in ms
	pausedUntil int64   // end of a pause of the node
	busy        int64   // end of a pause of the applier
	restart     int64
	starts      uint64
	onSave      func(entries int, sync bool) // called before each save of the log; nil: nothing
	bodies      int                          // number of snapshot bodies that the node has started to write
	full        string                       // create, write or seal: this call fails for the file of a snapshot, because the disk is full
	skew        int64                        // error of the wall clock, in ns
	wrong       uint64                       // index from which on the node applies updates wrongly; 0: never
	differs     uint64                       // index of the first update that it applied wrongly
}

var simID = wal.Identity{Topology: "simulation", Group: "lists"}

// identity returns the identity of the node's log.
func (n *node) identity() wal.Identity {
	id := simID
	id.Node = n.id
	return id
}

// snapshot returns the newest snapshot of the node.
func (n *node) snapshot() *pb.Snapshot { return n.core.Snapshot() }

var errCrashed = errors.New("crashed")

// start starts the node with its disk.
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
	n.machine = &comparingMachine{fsm.NewReplicated(n.definition(), fsm.Options{Sessions: n.w.sessions}), n}
	n.failing, n.ended = nil, nil
	rng := n.w.rng
	every, trailing, forward := uint64(5+rng.IntN(60)), uint64(1+rng.IntN(20)), rng.IntN(4) > 0
	sums := uint64(16 + rng.IntN(60))
	if n.w.event != nil {
		every, trailing, forward, sums = 1<<20, 1, true, 1<<20
	}
	if n.w.clientsActive {
		trailing = 1 << 20 // no node receives a snapshot from another
	}
	var err error
	n.raft, err = raft.NewNode(raft.NodeConfig{
		Core: raft.CoreConfig{
			Name: n.name, Peers: n.peers, Join: n.joins, Forward: forward, PendingMax: 64,
			SnapshotEvery: every, Trailing: trailing,
			Nonce:  raft.MemberID(n.name) ^ n.starts<<32 | 1,
			Now:    func() int64 { return simTime(n.w.now) + n.skew },
			Uptime: func() time.Duration { return time.Duration(n.uptime * float64(time.Millisecond)) }, ElectionTicks: n.w.electionTicks,
		},
		Prefer: n.w.prefer, Topology: simID.Topology, GroupName: simID.Group, Disk: &simDisk{n.disk, n}, Machine: n.machine, Transport: &simTransport{n: n}, Group: 1,
		ChecksumEvery: sums,
		Tick:          tickTime * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		if n.failing == nil {
			n.w.fail("%s must start, got: %v", n.name, err)
		}
		n.w.count("crash at the start")
		n.raft = nil
		n.disk.Crash()
		n.restart = n.w.now + 1 + n.w.rng.Int64N(electionTime)
		return
	}
	n.core = n.raft.Core()
	n.id = n.core.ID()
	n.loop, n.applier, n.snapshotter = newCoroutine(n.runLoop), newCoroutine(n.runApplier), newCoroutine(n.runSnapshotter)
	if n.w.event == nil {
		n.raft.SetPartBytes(1 + rng.IntN(60))
	}
	n.nextTick, n.pausedUntil, n.busy = n.w.now+rng.Int64N(tickTime), 0, 0
	n.w.note("start", n.name)
	n.raft.Begin()
}

// simTime returns the wall clock in nanoseconds at a time of the simulation.
func simTime(ms int64) int64 { return 1_700_000_000_000_000_000 + ms*int64(time.Millisecond) }

// definition returns the definition of the node's state machine.
func (n *node) definition() fsm.Definition[lists, appendTo, struct{}] {
	d := listsDefinition
	if n.wrong != 0 || n.w.onUpdate != nil {
		d.UpdateAt = func(a *appendTo, l *lists, e fsm.Entry) (struct{}, error) {
			if n.w.onUpdate != nil {
				n.w.onUpdate(n, e)
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

// up reports whether the node runs and is not paused.
func (n *node) up() bool { return n.raft != nil && n.pausedUntil <= n.w.now }

// simTransport is the transport of a node on the simulated network.
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
			if t.n.crashPoint(false) == nil {
				t.n.w.logMessage(t.n.name, to, m.Payload)
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

// crash stops the node, loses the unsynced data of its disk, and schedules a restart.
func (n *node) crash(why string) {
	if n.raft == nil {
		return
	}
	n.w.count(why)
	n.w.note("crash", n.name, why)
	n.end(errCrashed)
	n.restart = n.w.now + 20 + n.w.rng.Int64N(6*electionTime)
}

// end stops the node and loses the unsynced data of its disk.
func (n *node) end(err error) {
	n.failing = err
	n.disk.Crash()
	n.loop.stop()
	n.applier.stop()
	n.snapshotter.stop()
	n.raft.End(err)
	n.raft.ApplierTurn() // answers the readers
	n.raft.SnapshotterTurn()
	n.raft, n.core, n.receive = nil, nil, nil
}

// stop handles a node whose loop has ended with an error.
func (n *node) stop(err error) {
	n.w.logEnd(n, err)
	n.w.note("stop", n.name, err.Error())
	if errors.Is(err, raft.ErrRemoved) {
		n.removed, n.member = true, false
	} else if errors.Is(err, raft.ErrLogLost) && n.lost {
		n.w.count("lost log noticed")
	} else if n.w.event == nil && (errors.Is(err, raft.ErrEngine) || errors.Is(err, raft.ErrLogLost) || errors.Is(err, raft.ErrConflict) || errors.Is(err, fsm.ErrDamaged) || errors.Is(err, fsm.ErrDiverged) || n.wrong == 0 && errors.Is(err, fsm.ErrStateDiffers) || errors.Is(err, wal.ErrInvalid)) {
		n.w.fail("%s: %w", n.name, err)
	}
	n.crash("node stopped")
	if n.removed {
		n.restart = 0
	}
}

// renames returns the number of the change that created a name; 0: the name is an initial one.
func renames(name string) (n int) {
	if number, found := strings.CutPrefix(name, "m"); found { // initial names have another form
		n, _ = strconv.Atoi(number)
	}
	return n
}

// checkLeaders checks that each term has at most one leader, and that only one group has leaders. It also
// checks the members of the node.
func (n *node) checkLeaders() {
	if n.core == nil {
		return
	}
	if (n.w.now+int64(n.number))%electionTime == 0 && n.loop.until == 0 && n.core.Err() == nil { // rarely, because it takes long
		if err := n.core.CheckMembers(); err != nil {
			n.w.fail("%s: %w", n.name, err)
		}
	}
	if m := n.core.Members()[n.id]; m.Name != n.name && renames(m.Name) > renames(n.name) && n.loop.until == 0 { // the name is saved, and newer than the current one
		n.renamed = m.Name
	}
	if n.lost && len(n.core.Members()) > 0 {
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
		w.fail("term %d must have one leader, got two", term)
	case !ok && w.ruling != 0 && w.ruling != at.group && w.event == nil:
		w.fail("only one group may have leaders: %s", w.describe())
	case !ok:
		w.leaders[at], w.ruling = n.id, at.group
		w.count("leader")
	}
}
