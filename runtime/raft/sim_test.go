package raft_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/cryptotest"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// The simulation runs the nodes of a group, their disks, the network between them and some clients
// in one goroutine and in virtual time. The unit of time is a millisecond. One seed determines all
// random decisions.
const (
	tickTime     = 10 // between two ticks of a node
	electionTime = 10 * tickTime
	chaosTime    = 6_000
	quietTime    = 6_000 // without faults after chaosTime; within it all nodes must agree
)

// world is a simulation.
type world struct {
	t             *testing.T
	rng           *rand.Rand
	now           int64
	net           *transport.Network[[]byte]
	nodes         []*node
	clients       []*client
	history       history
	noFaults      bool                       // no more faults
	clientsActive bool                       // clients continue although noFaults is set
	onUpdate      func(n *node, e fsm.Entry) // is called for each update that a node applies; nil: not called
	sessions      int                        // limit of sessions in a state machine
	trace         uint64
	counts        map[string]int
	failure       error
	electionTicks int                              // of nodes that start from now on; 0: the default
	prefer        string                           // name of the preferred leader; "": none
	event         func(format string, args ...any) // is called with each event in words; nil: no transcript

	leaders map[rule]uint64  // id of the leader
	ruling  uint64           // the group whose leader was seen; 0: none yet
	log     map[uint64]entry // by index: the applied entries
	newest  uint64           // highest index that a node has applied

	changed  int64 // time of the last answer to a change of members
	changing int   // number of unanswered changes of members
	renames  int
	wiped    int64 // time at which a disk was wiped last
}

// rule is a term in a group.
type rule struct{ group, term uint64 }

type entry struct {
	term uint64
	sum  uint64
}

const simPeers = 3 // in most runs

// newWorld creates a group of three, five or one nodes, two more nodes that may be added to it, and
// four clients.
func newWorld(t *testing.T, seed uint64) *world { return newWorldOf(t, seed, 4) }

// newWorldOf is newWorld with a given number of clients.
func newWorldOf(t *testing.T, seed uint64, clients int) *world {
	cryptotest.SetGlobalRandom(t, seed) // for the random election timeouts of the engine
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), leaders: map[rule]uint64{}, log: map[uint64]entry{}, counts: map[string]int{},
	}
	w.net = transport.NewNetwork[[]byte](rand.New(rand.NewPCG(seed, 2)), transport.Faults{DelayMin: 1, DelayMax: 5})
	w.sessions = 7 + w.rng.IntN(8)
	members := simPeers
	switch w.rng.IntN(8) {
	case 0, 1:
		members = 5
	case 2:
		members = 1
	}
	first := map[string]string{}
	for i := range members + 2 {
		n := &node{w: w, name: fmt.Sprintf("n%d", i+1), number: i, disk: newMemoryDisk(seed + uint64(i)<<32), member: i < members}
		w.nodes = append(w.nodes, n)
		if n.member {
			first[n.name] = ""
			n.peers = first
		}
	}
	if clients > 0 && w.rng.IntN(2) == 0 {
		w.prefer = w.nodes[w.rng.IntN(members)].name
	}
	t.Cleanup(w.end)
	if clients > 0 && members > 1 {
		w.misconfigure(w.nodes[:members])
	}
	for _, n := range w.nodes[:members] {
		if n.restart == 0 {
			n.start()
		}
	}
	for i := range clients {
		w.clients = append(w.clients, &client{w: w, number: i})
	}
	return w
}

// misconfigure starts some of the first nodes late, or with wrong peers until the node restarts or
// the faults end.
func (w *world) misconfigure(nodes []*node) {
	for _, n := range nodes {
		switch w.rng.IntN(8) {
		case 0:
			n.restart = 1 + w.rng.Int64N(10*electionTime)
		case 1:
			w.count("other first members")
			right := n.peers
			n.peers = maps.Clone(right)
			delete(n.peers, nodes[w.rng.IntN(len(nodes))].name)
			n.peers[n.name] = ""
			n.repair = func() { n.peers = right }
		}
	}
}

// end stops all nodes.
func (w *world) end() {
	for _, n := range w.nodes {
		if n.raft != nil {
			n.end(errCrashed)
		}
	}
}

func (w *world) count(what string) { w.counts[what]++ }

// note adds an event to the trace. Tests compare the traces of two runs.
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

// deliver delivers the messages that are due.
func (w *world) deliver() {
	for {
		from, to, m, ok := w.net.Deliver(w.now)
		if !ok {
			return
		}
		if n := w.nodes[to]; n.receive != nil {
			n.receive(w.nodes[from].name, [][]byte{m})
		}
	}
}

// step runs one millisecond.
func (w *world) step() {
	w.now++
	w.deliver()
	for _, n := range w.nodes {
		n.uptime += tickTime / float64(tickTime+n.slowness)
		if n.raft == nil && n.restart > 0 && n.restart <= w.now && n.member {
			n.restart = 0
			n.start()
		}
		if !n.up() {
			continue
		}
		if n.nextTick <= w.now {
			n.nextTick, n.ticks = w.now+tickTime+n.slowness, true
		}
		n.run()
	}
	for _, c := range w.clients {
		c.step()
	}
	if !w.noFaults {
		w.injectFault()
	} else if w.now%electionTime == 0 {
		w.wipeStray()
	}
}

// simulate runs the simulation with a seed.
func simulate(t *testing.T, seed uint64) (w *world, err error) {
	w = newWorld(t, seed)
	for w.now < chaosTime && w.failure == nil {
		w.step()
	}
	w.endFaults()
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

// settled reports whether there is a leader, all members have applied all entries, and no client or
// proposal waits.
func (w *world) settled() bool {
	leader := false
	for _, n := range w.nodes {
		if !n.member || n.lost && !w.isMember(n) {
			continue
		}
		if n.raft == nil {
			return false
		}
		s := n.core.Status()
		leader = leader || s.Role == "leader"
		if (s.Pending > 0 || n.machine.Applied() < w.newest) && w.isMember(n) { // a removed node that was isolated may not know of its removal
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

// isMember reports whether n is a member in the status of the leader.
func (w *world) isMember(n *node) bool {
	for _, l := range w.nodes {
		if l.raft == nil {
			continue
		}
		if s := l.core.Status(); s.Role == "leader" {
			return slices.ContainsFunc(s.Members, func(m raft.MemberStatus) bool { return m.ID == n.id && !m.Leaving })
		}
	}
	return false
}

// checkEnd compares the states of the nodes at the end with each other and with the answers of the
// clients.
func (w *world) checkEnd() {
	if !w.settled() {
		w.fail("the group must settle: %s", w.describe())
		return
	}
	var want *lists
	var of string
	for _, n := range w.nodes {
		if n.raft == nil || !w.isMember(n) {
			continue
		}
		if err := n.core.CheckMembers(); err != nil {
			w.fail("%s: %w", n.name, err)
		}
		n.machine.View(func(s *lists) {
			if want == nil {
				want, of = s.clone(), n.name
			} else if !want.equal(s) {
				w.fail("%s and %s must have the same state, got\n%v\n%v", n.name, of, s.items, want.items)
			}
		})
	}
	if want != nil {
		w.history.check(w, want)
	}
}

func (w *world) describe() (text string) {
	for _, n := range w.nodes {
		if n.raft == nil {
			text += fmt.Sprintf("\n%s down, member %t", n.name, n.member)
			continue
		}
		s := n.raft.StatusNow()
		text += fmt.Sprintf("\n%s (id %d, group %x, lost %t, removed %t, joins %t, peers %v) %s of term %d (leader %s), applied %d commit %d last %d snapshot %d, pending %d, members %v", n.name, n.id, s.GroupID, n.lost, n.removed, n.joins, slices.Sorted(maps.Keys(n.peers)), s.Role, s.Term, s.Leader, s.Applied, s.Commit, s.Last, s.Snapshot, s.Pending, s.Members)
		for _, m := range s.Members {
			if m.Transfer != nil {
				text += fmt.Sprintf("\n   to %s: %+v", m.Name, *m.Transfer)
			}
		}
	}
	for _, c := range w.clients {
		text += fmt.Sprintf("\nclient %d busy %t", c.number, c.busy())
		if a := c.request; a != nil {
			text += fmt.Sprintf(" with %+v at %s, session %x, opens %t, deadline %d, tries %d, done %t", a.in, a.n.name, a.session, a.opens, a.deadline, a.tries, a.done)
		}
	}
	return text
}

func sortedCounts(counts map[string]int) (text string) {
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		text += fmt.Sprintf("\n%8d %s", counts[what], what)
	}
	return text
}
