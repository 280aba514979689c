package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
)

// clientDesign is a topology of two nodes: clients send to the instances of n1 and n2.
func clientDesign(messages int) *design {
	d := &design{nodes: 2, messages: messages, batch: 4, hops: 0, parts: []designPart{
		{name: "p0", external: true, placement: EveryNode},
		{name: "p1", instances: 1, placement: OnNode, node: "n1", with: 1},
		{name: "p2", instances: 1, placement: OnNode, node: "n2", with: 2},
	}, edges: []designEdge{{from: 0, to: 1, capacity: 64}, {from: 0, to: 2, capacity: 64, reply: true}}}
	d.groups = d.components()
	return d
}

// clientStart is when the first client starts, after all nodes.
const clientStart = 3 * time.Second

// clientSim is a simulation with clients of the nodes.
type clientSim struct {
	*simulation
	clients []*simNode
}

func simulateClients(seed uint64, messages, clients int) *clientSim {
	s := &clientSim{simulation: simulate(seed, clientDesign(messages))}
	s.clientsOnly = true
	s.until = time.Hour
	for i := range clients {
		s.ledger.edges = append(s.ledger.edges, make([]edgeLedger, len(s.design.edges)))
		s.at(clientStart, "start a client", func() { s.startClient(i) })
	}
	return s
}

// startClient does what beginClient does.
func (s *clientSim) startClient(i int) {
	n := &simNode{mailbox: newMailbox(), sim: s.simulation, index: s.design.nodes + i, name: clientPrefix + fmt.Sprint("C", i), boot: table.Boot(s.random.Uint64() | 1)}
	n.mailbox.posted = n.mailArrived
	n.settings = settings{Config: s.config, node: n.name, log: s.log}
	n.state, n.began = simRunning, s.now
	n.core = newCore(&n.settings.Config, n.name, uint64(n.boot), rand.New(rand.NewPCG(s.seed, uint64(100+n.index))), s.log)
	n.core.client = true
	n.core.emit = func(to string, f []byte) { s.transmit(n, to, f) }
	var err error
	if n.top, err = s.newTop(n); err == nil {
		n.where, err = newLookup(&n.settings, s.nodes[0].table.Replica())
	}
	if err == nil {
		err = n.top.border.Place(func(int, int) bool { return false })
	}
	if err != nil {
		s.fault("%s: %v", n.name, err)
		return
	}
	n.core.begin(n.top.border, n.where)
	n.stepper = &stepper{Stepper: n.top.pool.Stepper(s.random.Uint64()), now: s.now}
	n.active, n.coreAt = true, s.now
	s.nodes = append(s.nodes, n)
	s.clients = append(s.clients, n)
	s.connect(n, true)
}

// connect opens or ends the connections of a client, as clientTransport does.
func (s *clientSim) connect(c *simNode, connected bool) {
	for _, n := range s.nodes[:s.design.nodes] {
		s.net.Cut(c.index, n.index, !connected)
		s.net.Cut(n.index, c.index, !connected)
		c.post(func(h *happened) { h.alive = append(h.alive, alive{node: n.name, alive: connected}) })
		if n.state == simRunning {
			n.post(func(h *happened) { h.alive = append(h.alive, alive{node: c.name, alive: connected}) })
		}
	}
}

// stopAll closes the clients, and later stops the nodes.
func (s *clientSim) stopAll(at time.Duration) {
	s.at(at, "close the clients", func() {
		for _, c := range s.clients {
			c.stop()
		}
	})
	s.at(at+time.Minute, "stop the nodes", func() {
		for _, n := range s.nodes[:s.design.nodes] {
			n.stop()
		}
	})
}

// twice reports whether a message was handled twice.
func (s *clientSim) twice() bool {
	return strings.Contains(strings.Join(s.faults, "\n"), "got message 1 of p0/0")
}

// TestWindowOfClients loses all confirmations of a client, and ends its connection. If the
// client comes back within clientWindow, no message is handled twice. Later it would be: so
// the window is not longer than stated, and a client gives up before.
func TestWindowOfClients(t *testing.T) {
	for _, c := range []struct {
		away  time.Duration
		twice bool
	}{
		{clientWindow - time.Second, false},
		{clientWindow + time.Second, true},
	} {
		s := simulateClients(1, 20, 1)
		const lost = 10 * time.Second
		s.onReceived = func(int, *parcel) { // the first message arrives, and its confirmation does not
			for n := range s.design.nodes {
				s.net.Cut(n, s.clients[0].index, true)
			}
		}
		s.at(lost, "the connection ends", func() {
			s.onReceived = nil
			s.connect(s.clients[0], false)
		})
		s.at(lost+c.away, "the client comes back", func() { s.connect(s.clients[0], true) })
		s.stopAll(lost + c.away + time.Minute)
		s.run()
		switch f := s.failure(); {
		case s.counts["messages"] == 0:
			t.Errorf("away for %v: no message was handled", c.away)
		case c.twice && !s.twice():
			t.Errorf("away for %v: no message was handled twice: %s", c.away, f)
		case !c.twice && f != "":
			t.Errorf("away for %v: %s", c.away, f)
		}
	}
	if clientRetryMax >= clientWindow {
		t.Error("a client may send a message again after it was forgotten")
	}
}

// TestRandomClients cuts the connections of several clients at random. Each message is
// handled once and in order, each call gets its reply once, and the counters add up.
func TestRandomClients(t *testing.T) {
	for seed := range uint64(60) {
		s := simulateClients(seed, 40, 1+int(seed%3))
		at := clientStart
		for range 20 {
			at += time.Duration(s.random.Int64N(int64(200 * time.Millisecond)))
			i, away := s.random.IntN(1+int(seed%3)), time.Duration(s.random.Int64N(int64(clientWindow/10)))
			if s.random.IntN(2) == 0 {
				away /= 1000
			}
			s.at(at, "a client loses its connections", func() { s.connect(s.clients[i], false) })
			s.at(at+away, "a client comes back", func() { s.connect(s.clients[i], true) })
		}
		s.at(20*time.Minute, "all come back", func() {
			for _, c := range s.clients {
				s.connect(c, true)
			}
		})
		s.stopAll(30 * time.Minute)
		s.run()
		if f := s.failure(); f != "" {
			t.Fatal(f)
		}
		if s.counts["messages"] == 0 {
			t.Fatal("no message was handled")
		}
	}
}

// TestGuestsOfClientsAreUsedAgain runs many clients one after the other. The node makes
// guests for those at one time only.
func TestGuestsOfClientsAreUsedAgain(t *testing.T) {
	const rounds = 30
	s := simulateClients(1, 5, 0)
	for i := range rounds {
		s.ledger.edges = append(s.ledger.edges, make([]edgeLedger, len(s.design.edges)))
		at := clientStart + time.Duration(i)*time.Minute
		s.at(at, "start a client", func() { s.startClient(i) })
		s.at(at+30*time.Second, "close a client", func() { s.clients[i].stop() })
		s.at(at+40*time.Second, "its connection ends", func() { s.connect(s.clients[i], false) })
	}
	var known, slots int
	s.at(rounds*time.Minute+30*time.Second, "look", func() {
		for _, p := range s.nodes[0].core.ordered {
			if p.slot != nil {
				known++
			}
		}
		slots = s.nodes[0].core.clients.slots
	})
	s.stopAll(rounds*time.Minute + time.Minute)
	s.run()
	if f := s.failure(); f != "" {
		t.Fatal(f)
	}
	if known != 0 || slots != 1 {
		t.Errorf("%d clients are known after they have ended, and there are guests for %d", known, slots)
	}
}

// TestClientsDuringAStop stops all nodes while clients send without an end. The nodes must end
// soon, and keep no message that they have accepted.
func TestClientsDuringAStop(t *testing.T) {
	speed.NoRace(t)
	for seed := range uint64(speed.Pick(t, 20, 100, 1000)) {
		s := simulateClients(seed, endlessMessages, 2)
		s.turn = 4 * time.Millisecond
		stop := clientStart + 2*time.Second
		s.at(stop, "stop the nodes", func() {
			for _, n := range s.nodes[:s.design.nodes] {
				n.stop()
			}
		})
		s.at(stop+leaveAfter, "check", func() {
			for _, n := range s.nodes[:s.design.nodes] {
				if n.state == simRunning || n.left {
					s.fault("%s runs, or has left alone:\n%s", n.name, n.describe())
				}
			}
			s.config.Retry.Timeout = time.Second
			for _, c := range s.clients {
				c.settings.Retry.Timeout = time.Second
				c.stop()
			}
		})
		s.run()
		if f := s.failure(); f != "" {
			t.Fatal(f)
		}
	}
}
