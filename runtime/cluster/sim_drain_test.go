package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/transport"
)

// drainSim is a simulation whose sources never end. One node is stopped under load, and drains
// while the others go on. No message may be dropped before the node has left.
type drainSim struct {
	*simulation
	node  *simNode
	stop  time.Duration
	clean bool          // the network is without faults
	took  time.Duration // from the stop until the node had left
}

// endlessMessages is a number of messages that no source reaches.
const endlessMessages = 1 << 30

func simulateDrain(seed uint64, d *design, node int, stop time.Duration) *drainSim {
	s := &drainSim{simulation: simulate(seed, d), stop: stop, clean: true}
	s.turn = 2 * time.Millisecond
	s.leaveAfter = 300 * time.Millisecond
	s.until = time.Hour
	s.at(stop, "stop "+nodeName(node), func() {
		s.node = s.nodes[node]
		s.node.stop()
		s.await()
	})
	return s
}

// drainWithin is how long a drain may take. A handler takes up to 5 ms, so all queues together
// may hold work for many seconds.
const drainWithin = 20 * time.Minute

// await waits for the end of the node. Then it stops the others, which drop the messages that
// they keep for the node.
func (s *drainSim) await() {
	switch {
	case s.node.state == simGone:
		s.took = s.now - s.stop
		s.checkLeft()
		s.config.Retry.Timeout = time.Second
		for _, n := range s.nodes {
			n.settings.Retry.Timeout = time.Second
			n.stop()
		}
	case s.now-s.stop > drainWithin:
		s.fault("%s has not left after %v", s.node.name, s.now-s.stop)
	default:
		s.at(s.now+20*time.Millisecond, "wait", s.await)
	}
}

// checkLeft checks that the node has handled all messages that it has accepted, and has dropped
// none.
func (s *drainSim) checkLeft() {
	if !s.node.left {
		return // all groups have finished
	}
	for _, f := range s.node.top.pool.Snapshot().Edges[:len(s.design.edges)] {
		if f.Len != 0 || f.Waiting != 0 {
			s.fault("%s has left with messages: %+v", s.node.name, f)
		}
	}
	for p := range s.node.core.nodes() {
		if !p.isHandled() {
			s.fault("%s has left, and has not handled all messages of %s", s.node.name, p.name)
		}
		if !p.found || !s.clean {
			continue
		}
		for _, pair := range s.nodes[slices.IndexFunc(s.nodes, func(n *simNode) bool { return n.name == p.name })].core.peer(s.node.name).out {
			if pair.handed > 0 && pair.kept[0].since < s.node.core.endedAt { // later ones are of nodes that start while the node ends
				s.fault("%s has left, and %d chunks of %s are on their way", s.node.name, pair.handed, p.name)
			}
		}
	}
}

// pressed is a topology of three nodes that send to each other at full speed, in a number of
// layers.
func pressed(layers int) *design {
	d := &design{nodes: 3, messages: endlessMessages, batch: 8, hops: 2 * layers}
	for i := range layers {
		d.parts = append(d.parts, designPart{name: fmt.Sprint("p", i), instances: 6, source: i == 0, with: i})
		if i > 0 {
			d.edges = append(d.edges, designEdge{from: i - 1, to: i, capacity: 2})
		}
	}
	d.parts[layers-1].slow = 10 * time.Millisecond
	d.groups = d.components()
	return d
}

// TestDrainUnderBackpressure stops one of three nodes while all queues are full. It waits for
// messages whose receivers on other nodes wait for room in queues to the node.
func TestDrainUnderBackpressure(t *testing.T) {
	speed.NoRace(t)
	for seed := range uint64(speed.Pick(t, 10, 20, 200)) {
		s := simulateDrain(seed, pressed(3+int(seed%2)), int(seed%3), time.Second)
		s.run()
		if f := s.failure(); f != "" {
			t.Fatal(f)
		}
		if most := s.leaveAfter + 5*time.Second; s.took > most {
			t.Errorf("seed %d: the drain has taken %v, want %v at most", seed, s.took, most)
		}
	}
}

// fullCycle is a topology of three nodes whose sources all send into a cycle: p1 -> p2 -> p1. Each node has
// an instance of p1, which is also a source, and p2 is on n1, and sends to all of them.
func fullCycle() *design {
	d := &design{nodes: 3, messages: endlessMessages, batch: 8, hops: designHopsMax, parts: []designPart{
		{name: "p0", instances: 1, source: true, placement: EveryNode, with: 0},
		{name: "p1", instances: 1, source: true, placement: EveryNode, with: 1},
		{name: "p2", instances: 1, placement: OnNode, node: "n1", with: 2},
	}, edges: []designEdge{{from: 0, to: 2, capacity: 4}, {from: 1, to: 2, capacity: 4}, {from: 2, to: 1, capacity: 4}}}
	d.groups = d.components()
	return d
}

// TestDrainBehindAFullCycle stops a node whose messages wait until a cycle has room again on another node. The
// sources of the third node must not keep the cycle full.
func TestDrainBehindAFullCycle(t *testing.T) {
	for seed := range uint64(5) {
		s := simulateDrain(seed, fullCycle(), 1, time.Second)
		s.run()
		if f := s.failure(); f != "" {
			t.Fatal(f)
		}
		if most := s.leaveAfter + 5*time.Second; s.took > most {
			t.Errorf("seed %d: the drain has taken %v, want %v at most", seed, s.took, most)
		}
	}
}

// TestDrainsOfFullCycles runs drains of random topologies in which a cycle is full.
func TestDrainsOfFullCycles(t *testing.T) {
	speed.NoRace(t)
	speed.Landing(t)
	for _, seed := range []uint64{104443981106564, 39066674574245} {
		s := drawDrain(seed)
		s.run()
		if f := s.failure(); f != "" {
			t.Fatal(f)
		}
	}
}

// TestDrainThatFillsACycle stops a node that handles messages slowly, and refuses further ones. So a queue to it becomes
// full and stays so, on the other node, and its own messages must not wait for this.
func TestDrainThatFillsACycle(t *testing.T) {
	d := &design{nodes: 2, messages: endlessMessages, batch: 1, hops: designHopsMax, parts: []designPart{
		{name: "p0", instances: 1, source: true, placement: OnNode, node: "n2", with: 0},
		{name: "p1", instances: 1, placement: OnNode, node: "n2", with: 1},
		{name: "p2", instances: 1, placement: OnNode, node: "n1", with: 2, slow: 200 * time.Millisecond},
	}, edges: []designEdge{{from: 0, to: 2, capacity: 64}, {from: 1, to: 2, capacity: 1}, {from: 2, to: 1, capacity: 1}}}
	d.groups = d.components()
	s := simulateDrain(1, d, 0, 5*time.Second)
	s.run()
	if f := s.failure(); f != "" {
		t.Fatal(f)
	}
	if s.took < 2*fullAfter {
		t.Errorf("the drain has taken %v only", s.took)
	}
}

// TestSourcesGoOnAfterAFullCycle counts the messages that a node sends into a cycle which is full on another node
// now and then.
func TestSourcesGoOnAfterAFullCycle(t *testing.T) {
	s, sent, holds := simulate(1, fullCycle()), map[bool]int{}, 0
	s.turn = 2 * time.Millisecond
	s.onReceived = func(edge int, m *parcel) {
		if s.design.edges[edge].from < 2 && m.node == 2 {
			sent[s.now > 30*time.Second]++
		}
	}
	var look func()
	look = func() {
		if s.nodes[2].core.role.(*nodeCore).cycles.held[s.design.groups[1]] {
			holds++
		}
		s.at(s.now+100*time.Millisecond, "look", look)
	}
	s.at(2*time.Second, "look", look)
	s.at(time.Minute, "check", func() {
		if holds < 10 || sent[true] < sent[false]/2 {
			t.Errorf("n3 has sent %d and %d messages, and has held back some at %d looks", sent[false], sent[true], holds)
		}
		s.until = 0
	})
	s.run()
}

// TestHoldsEndWithTheProcess lets the node whose queues are full end. The others hold back no messages for it while they
// cannot reach it, and for its next process.
func TestHoldsEndWithTheProcess(t *testing.T) {
	s := simulate(1, fullCycle())
	s.turn = 2 * time.Millisecond
	cycle := s.design.groups[1]
	of := func() *nodeCore { return s.nodes[2].core.role.(*nodeCore) }
	check := func(what string, held, said bool) {
		c := of()
		if full := c.peers["n1"].saidFull; c.cycles.held[cycle] != held || (full != nil && full[cycle]) != said {
			t.Errorf("%s: n3 holds back messages: %v, and n1 is full: %v; want %v and %v", what, c.cycles.held[cycle], full, held, said)
		}
	}
	s.at(time.Second, "n2 never returns", func() { s.nodes[1].frozen = true }) // so n1 stays full
	s.at(10*time.Second, "check", func() {
		check("while n1 is full", true, true)
		s.nodes[0].frozen = true
		s.nodes[2].report(s.nodes[0], false)
	})
	s.at(11*time.Second, "check", func() {
		check("while n3 cannot reach n1", false, true)
		s.nodes[0].frozen = false
		s.nodes[2].report(s.nodes[0], true)
	})
	s.at(12*time.Second, "check", func() {
		check("when n3 reaches n1 again", true, true)
		s.restart(0)
	})
	s.at(12*time.Second+1, "await the next process", func() { s.awaitProcess(2, "n1", func() { check("after a restart", false, false); s.until = 0 }) })
	s.run()
}

// awaitProcess calls do when a node has a session with the next process of another one.
func (s *simulation) awaitProcess(node int, of string, do func()) {
	before := s.nodes[node].core.peers[of].process
	var look func()
	look = func() {
		if s.nodes[node].core.peers[of].process != before && !s.nodes[node].mailbox.busy {
			do()
			return
		}
		s.at(s.now+time.Millisecond, "look", look)
	}
	look()
}

// drawDrain draws a topology and a node that is stopped.
func drawDrain(seed uint64) *drainSim {
	r := rand.New(rand.NewPCG(seed, 4))
	d := drawDesign(r, 2+r.IntN(4))
	d.messages, d.load, d.hops = endlessMessages, min(d.load, 100), min(d.hops, 2*designHopsMax)
	s := simulateDrain(seed, d, r.IntN(d.nodes), time.Duration(1+r.Int64N(int64(2*time.Second))))
	s.leaveAfter = time.Duration(1 + r.Int64N(int64(500*time.Millisecond)))
	s.config.Neighborhood = r.IntN(3)
	if r.IntN(3) == 0 {
		s.window = 1 + r.IntN(20)
	}
	if r.IntN(4) == 0 {
		s.clean = false
		s.drawNetwork(r)
	} else {
		s.net.SetFaults(transport.Faults{DelayMin: int64(50 * time.Microsecond), DelayMax: int64(time.Millisecond), Ordered: true})
	}
	return s
}

// TestRandomDrains stops one node of a random topology whose sources never end. The node must leave
// in bounded time, without help of retry.timeout.
func TestRandomDrains(t *testing.T) {
	speed.NoRace(t)
	failed := 0
	counts := map[string]int{}
	first, end := speed.Seeds(t, 20, 150, 3000)
	for seed := first; seed < end; seed++ {
		s := drawDrain(seed)
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
		if s.node != nil && s.node.left {
			counts["left"]++
		}
		counts["steps"] += s.steps
	}
	t.Logf("%d seeds from %d on: %v", end-first, first, counts)
}

// TestIdleNodeLeavesSoon stops a node that has nothing to do, in a topology that goes on. It must
// leave long before leaveAfter. If another node drains too, perhaps all nodes are stopped, and it
// waits.
func TestIdleNodeLeavesSoon(t *testing.T) {
	for _, others := range []bool{false, true} {
		s := simulate(1, callDesign(0))
		s.clientsOnly = true
		s.design.nodes = 3
		s.config = s.design.config()
		s.config.Retry = Retry{Timeout: time.Second, Min: time.Millisecond, Max: time.Second}
		s.ledger = newLedger(s.design)
		stopped := time.Minute
		s.at(stopped, "stop n2", func() { s.nodes[1].stop() })
		if others {
			s.at(stopped+quietAfter/2, "stop n3", func() { s.nodes[2].stop() })
		}
		s.at(stopped+quietAfter+settleAfter+3*drainLook, "check", func() {
			if runs := s.nodes[1].state == simRunning; runs != others {
				s.fault("n2 runs: %v", runs)
			}
		})
		s.at(stopped+time.Minute, "stop all", func() {
			for _, n := range s.nodes {
				n.stop()
			}
		})
		s.run()
		if f := s.failure(); f != "" {
			t.Fatal(f)
		}
	}
}

// TestCallsDuringADrain calls an instance on a node that drains. Until the node refuses messages, it
// answers all calls without a delay.
func TestCallsDuringADrain(t *testing.T) {
	const most = 100 * time.Millisecond
	s := simulate(1, callDesign(time.Millisecond))
	s.design.messages = endlessMessages
	s.turn = 4 * time.Millisecond
	s.net.SetFaults(transport.Faults{DelayMin: int64(50 * time.Microsecond), DelayMax: int64(time.Millisecond), Ordered: true})
	s.config.Retry.Timeout = time.Second
	stopped := 2 * time.Second
	refuses := stopped + leaveAfter
	s.at(stopped, "stop n2", func() { s.nodes[1].stop() })
	s.at(refuses+time.Second, "check", func() {
		if n := s.nodes[1]; n.state == simRunning {
			s.fault("n2 has not left:\n%s", n.describe())
		}
		s.nodes[0].stop()
	})
	s.run()
	if f := s.failure(); f != "" {
		t.Fatal(f)
	}
	during := 0
	for i, a := range s.ledger.asks {
		if a.node.index != 0 || a.at < stopped || a.at > refuses-most {
			continue
		}
		if a.err != nil || a.done-a.at > most {
			t.Errorf("call %d of n1 at %v has taken %v, with the error %v", i+1, a.at, a.done-a.at, a.err)
		}
		during++
	}
	if during < 50 {
		t.Errorf("only %d calls during the drain", during)
	}
}

// TestSlowDrain stops a node that needs much longer than retry.timeout for the messages that it has
// accepted. The sending node must not count them as dropped.
func TestSlowDrain(t *testing.T) {
	d := &design{nodes: 2, messages: endlessMessages, batch: 4, parts: []designPart{
		{name: "p0", instances: 1, source: true, placement: OnNode, node: "n1", with: 0},
		{name: "p1", instances: 1, placement: OnNode, node: "n2", with: 1, slow: time.Second},
	}, edges: []designEdge{{from: 0, to: 1, capacity: 64}}}
	d.groups = d.components()
	s := simulateDrain(1, d, 1, 10*time.Second)
	s.config.Retry.Timeout = 2 * time.Second
	s.run()
	if f := s.failure(); f != "" {
		t.Fatal(f)
	}
	if s.took < 5*s.config.Retry.Timeout {
		t.Errorf("the drain has taken %v only", s.took)
	}
	if l, f := s.ledger.edges[0][0], s.nodes[0].top.pool.Snapshot().Edges[0]; f.Received != uint64(l.handled) {
		t.Errorf("%d messages were handled, and the figures of the sending node are %+v", l.handled, f)
	}
}
