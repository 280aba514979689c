package cluster

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
)

// restarts are the processes that a simulation kills, and starts again.
type restarts struct {
	notes  map[int]table.Boot // the file of each node, see processFile
	points int                // steps of the agreement so far
	kill   map[int]int        // by point: 1 + the node, or 0 for the node of the point, or killAll
}

const (
	killAll       = -1
	simPointsMax  = 200
	simRestartMax = 20 * time.Second // after it was killed: before the others wait no longer
)

// point is called at each step of the agreement about the end. Some of them kill a process.
func (s *simulation) point(n *simNode) {
	s.restarts.points++
	which, kills := s.restarts.kill[s.restarts.points]
	if !kills {
		return
	}
	s.at(s.now, "kill", func() {
		switch {
		case which == killAll:
			for i := range s.design.nodes {
				s.restart(i)
			}
		case which == 0:
			s.restart(n.index)
		default:
			s.restart((which - 1) % s.design.nodes)
		}
	})
}

// restart kills the process of a node, and starts another one some time later.
func (s *simulation) restart(i int) {
	old, r := s.nodes[i], s.tables.random
	if old.state != simRunning && old.state != simEnding {
		return
	}
	old.state, s.ledger.restarted = simGone, true
	s.counts["kills"]++
	s.trace.note(s.now, old.name+" is killed")
	next := newSimNode(s, i)
	s.nodes[i] = next
	if r.IntN(2) == 0 {
		for _, other := range s.nodes {
			if other != next {
				s.at(s.now+s.tables.delay(time.Second), other.name+" cannot reach "+next.name, func() {
					if next.state == simWaiting {
						other.report(next, false)
					}
				})
			}
		}
	}
}

// reachRestarted lets the others reach the next process of a node.
func (s *simulation) reachRestarted(n *simNode) {
	if !s.ledger.restarted || s.profile != "" {
		return
	}
	for _, other := range s.nodes {
		if other != n {
			s.at(s.now+s.tables.delay(time.Second), other.name+" reaches "+n.name+" again", func() { other.report(n, true) })
		}
	}
}

// isOver does what Node.join does with a process that was killed. It reports whether the process
// must not enter the cluster now.
func (n *simNode) isOver() bool {
	s := n.sim
	last := &lastRun{node: n.name, killed: s.restarts.notes[n.index]}
	if last.killed == 0 {
		return false
	}
	for i := range n.top.border.Groups() {
		last.groups = append(last.groups, !n.top.border.Group(i).Empty)
	}
	t := s.tables.of(n.index)
	if !last.finished(t.replica) {
		if n.joining = true; !t.hasMajority() {
			n.state = simWaiting
			s.at(s.now+simTableRetry, n.name+" starts", n.start)
			return true
		}
		t.catchUp(true)
		n.joining = false
		if !last.finished(t.replica) {
			return false
		}
	}
	s.counts["nodes that were killed at the end"]++
	n.state, n.joining = simWaiting, true
	n.farewell = s.now + min(s.config.farewell(true), simEndsWithin/2)
	n.awaitFarewells(map[string]bool{})
	return true
}

// awaitFarewells does what farewells.await does.
func (n *simNode) awaitFarewells(known map[string]bool) {
	s := n.sim
	for i, other := range s.nodes {
		ends := other.state == simEnding || other.state == simWaiting && other.farewell > 0
		switch {
		case s.cut[[2]int{n.index, i}] || s.cut[[2]int{i, n.index}]:
		case other == n || other.state == simGone || ends:
			known[other.name] = true
		}
		if other.state == simRunning || other.state == simEnding {
			other.post(func(h *happened) { h.farewells = append(h.farewells, n.name) })
		}
	}
	if len(known) < len(s.nodes) && s.now < n.farewell {
		s.at(s.now+farewellEvery, n.name+" asks whether the others know the end", func() { n.awaitFarewells(known) })
		return
	}
	n.state, n.joining, s.restarts.notes[n.index] = simGone, false, 0
	s.trace.note(s.now, n.name+" ends, because the topology has finished")
	for _, other := range s.nodes {
		if other != n {
			s.at(s.now+s.tables.delay(time.Second), other.name+" learns that "+n.name+" has ended", func() { other.report(n, false) })
		}
	}
}

// simulateRestarts draws a topology whose processes are killed in steps of the agreement.
func simulateRestarts(seed uint64) *simulation {
	r := rand.New(rand.NewPCG(seed, 5))
	s := simulate(seed, drawDesign(r, 1+r.IntN(5)))
	s.turn = []time.Duration{0, time.Microsecond, time.Millisecond}[r.IntN(3)]
	s.drawNetwork(r)
	s.at(simRestartMax, "heal", s.heal)
	s.until = simRestartMax + simEndsWithin + neverExpires // messages for nodes that have ended wait for retry.timeout
	s.restarts.kill = map[int]int{}
	for range 1 + r.IntN(4) {
		point := int(math.Exp(r.Float64() * math.Log(simPointsMax)))
		s.restarts.kill[point] = []int{killAll, 0, 0, 1, 1, 1 + r.IntN(s.design.nodes)}[r.IntN(6)]
	}
	return s
}

// TestKilledNodesEnd kills processes in steps of the agreement about the end, and starts them again. Each run
// must end, with nothing kept.
func TestKilledNodesEnd(t *testing.T) {
	speed.NoRace(t)
	counts, failed := map[string]int{}, 0
	first, end := speed.Seeds(t, 60, 500, 20_000)
	for seed := first; seed < end; seed++ {
		s := simulateRestarts(seed)
		s.run()
		if f := s.failure(); f != "" {
			if failed++; failed > 1 {
				f, _, _ = strings.Cut(f, "\n")
			}
			t.Errorf("%s\n%s", f, speed.Repeat(t, seed))
			if failed == failuresShown || isFailFast() {
				break
			}
		}
		for k, v := range s.counts {
			counts[k] += v
		}
	}
	for _, kind := range []string{"kills", "nodes that were killed at the end", "proposals that come too late"} {
		if counts[kind] == 0 && end-first >= 60 && !t.Failed() {
			t.Errorf("%s: none in %d seeds", kind, end-first)
		}
	}
	t.Logf("%d seeds from %d on: %v", end-first, first, counts)
}

// TestMessagesAfterTheEnd starts n1 again while the others end. Its source sends to instances that have finished,
// on nodes whose workers have ended. These nodes drop and confirm the messages, so n1 ends too.
func TestMessagesAfterTheEnd(t *testing.T) {
	s := simulateRestarts(77936849967555) // found by TestKilledNodesEnd
	s.run()
	if f := s.failure(); f != "" {
		t.Fatal(f)
	}
	if s.counts["kills"] != 2 {
		t.Error("the seed starts other processes again, so this test checks nothing. Find another seed")
	}
}

// TestTopologyRunsAgain runs topologies twice with the same address table. The second run handles
// and finishes everything, like the first one.
func TestTopologyRunsAgain(t *testing.T) {
	speed.NoRace(t)
	first, end := speed.Seeds(t, 20, 100, 2000)
	for seed := first; seed < end && !t.Failed(); seed++ {
		r := rand.New(rand.NewPCG(seed, 6))
		d := drawDesign(r, 1+r.IntN(4))
		var tables *simTables
		for run := range uint64(2) {
			s := simulate(seed+run<<32, d) // other processes
			s.drawNetwork(r)
			s.at(simRestartMax, "heal", s.heal)
			if tables != nil {
				tables.sim, s.tables = s, tables
				for _, t := range tables.open {
					t.read = false // its read is in the script of the first run
				}
			}
			tables = s.tables
			s.run()
			if f := s.failure(); f != "" {
				t.Fatalf("%s\n%s", f, speed.Repeat(t, seed))
			}
		}
	}
}
