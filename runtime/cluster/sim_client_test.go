package cluster

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
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

// startClient does what clientPart.begin does.
func (s *clientSim) startClient(i int) {
	n := &simNode{mailbox: newMailbox(), sim: s.simulation, index: s.design.nodes + i, name: clientPrefix + fmt.Sprint("C", i), boot: table.Boot(s.random.Uint64() | 1)}
	n.mailbox.posted = n.mailArrived
	n.settings = settings{Config: s.config, node: n.name, log: s.log}
	n.state, n.began = simRunning, s.now
	n.core = newClientCore(&n.settings.Config, n.name, uint64(n.boot), rand.New(rand.NewPCG(s.seed, uint64(100+n.index))), s.log).core
	n.core.emit = func(to string, f []byte) { s.transmit(n, to, f) }
	var err error
	if n.top, err = s.newTop(n); err == nil {
		t := s.tables.of(n.index)
		t.catchUp(true)
		n.where, err = newLookup(&n.settings, t.Replica())
	}
	if err == nil {
		err = n.top.border.Place(func(int, int) bool { return false })
	}
	if err != nil {
		s.fault("%s: %v", n.name, err)
		return
	}
	n.core.begin(n.top.border, n.places())
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

// TestWindowOfClients loses all confirmations of a client, and ends its connection. If the
// client comes back within clientWindow, its messages are handled once. Later the node has
// forgotten the client, and cannot know which messages it has handled: the client drops those
// that it had sent.
func TestWindowOfClients(t *testing.T) {
	for _, c := range []struct {
		away  time.Duration
		drops bool
	}{
		{clientWindow - time.Second, false},
		{clientWindow + time.Second, true},
	} {
		s := simulateClients(1, 20, 1)
		s.forgets = c.drops
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
		case f != "":
			t.Errorf("away for %v: %s", c.away, f)
		case c.drops != (s.counts["dropped"] > 0):
			t.Errorf("away for %v: %d messages were dropped", c.away, s.counts["dropped"])
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

// TestRandomRoomForClients lets nodes forget clients that have lost their connections, because
// others need their place. No message is handled twice or out of order, each call ends, and the
// counters add up.
func TestRandomRoomForClients(t *testing.T) {
	forgotten, dropped := 0, 0
	for seed := range uint64(60) {
		s := simulateClients(seed, 60, 2)
		s.forgets = true
		at := clientStart
		for range 30 {
			at += time.Duration(s.random.Int64N(int64(50 * time.Millisecond)))
			i, away := s.random.IntN(2), time.Duration(s.random.Int64N(int64(20*time.Millisecond)))
			s.at(at, "a client loses its connections", func() { s.connect(s.clients[i], false) })
			s.at(at+away/2, "a node needs room", func() {
				done := make(chan bool, 1)
				n := s.nodes[s.random.IntN(s.design.nodes)]
				n.post(func(h *happened) { h.rooms = append(h.rooms, roomFor{owner: "other", done: done}) })
				s.at(at+away, "a client comes back", func() {
					s.connect(s.clients[i], true)
					if len(done) > 0 && <-done {
						forgotten++
					}
				})
			})
		}
		s.stopAll(30 * time.Minute)
		s.run()
		if f := s.failure(); f != "" {
			t.Fatal(f)
		}
		dropped += s.counts["dropped"]
	}
	if forgotten == 0 || dropped == 0 {
		t.Errorf("%d clients were forgotten, and %d messages dropped", forgotten, dropped)
	}
}

// TestCloseOfAClientWhoseCallerGaveUp closes a client that is cut off. Its only message is a request
// whose caller waits no longer, so it ends long before its drain timeout.
func TestCloseOfAClientWhoseCallerGaveUp(t *testing.T) {
	s := simulateClients(1, 1, 1)
	s.forgets = true // the message is dropped
	const at = 10 * time.Second
	s.at(clientStart, "the client sends nothing by itself", func() { s.clients[0].sendAt = neverExpires })
	s.at(at, "a caller gives up", func() {
		c := s.clients[0]
		s.connect(c, false)
		const edge = 1
		e := c.top.externals[0]
		to, err := e.entry(c.top, 0, s.design.edges[edge].to, 0)
		if err != nil {
			t.Fatal(err)
		}
		l := to.lane(edge)
		target := piper.Target{Gate: &to.Gate, Head: l.head()}
		if err := e.x.Lock(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		m := s.newParcel(c, edge, 0, 0, 0)
		s.sent(c, edge, 0, &m)
		var calls piper.Calls[parcel, parcel]
		r := calls.Request(m)
		l.put(to.number(), r)
		e.x.Commit(target)
		if _, err := calls.Wait(t.Context(), e.x, r, 0); err == nil {
			t.Error("the node answers")
		}
	})
	s.stopAll(at + time.Second)
	s.at(at+10*time.Second, "look", func() {
		if c := s.clients[0]; c.state == simRunning {
			t.Errorf("the client has not ended: %s", c.describe())
		}
	})
	s.run()
	if f := s.failure(); f != "" {
		t.Fatal(f)
	}
	if s.counts["dropped"] != 1 {
		t.Errorf("%d messages were dropped", s.counts["dropped"])
	}
}

// TestClientLooksUpAgain lets a client look for an instance on a node that does not have it. The
// node returns the messages, and the client sends them to the other node when it knows the
// place. Its connections stay.
func TestClientLooksUpAgain(t *testing.T) {
	s := simulateClients(1, 20, 1)
	wrong := map[[2]int]string{}
	s.wrong = func(n *simNode) map[[2]int]string {
		if isClient(n.name) {
			return wrong
		}
		return nil
	}
	s.at(clientStart-1, "the client has an old address table", func() {
		wrong[[2]int{2, 0}] = nodeName(0)
		for _, n := range s.nodes {
			asNode(n.core).clients.drop = func(name string) { t.Errorf("%s ends the connection of %s", n.name, name) }
		}
	})
	returned, asked := 0, 0
	s.at(clientStart, "look whether it asks for the table", func() { s.clients[0].core.stale = func() { asked++ } })
	s.at(clientStart+10*time.Second, "the client learns the place", func() {
		returned = len(s.clients[0].core.returned)
		delete(wrong, [2]int{2, 0})
		s.clients[0].post(func(h *happened) { h.members = true })
	})
	s.stopAll(clientStart + time.Minute)
	s.run()
	if f := s.failure(); f != "" {
		t.Fatal(f)
	}
	if returned == 0 || asked == 0 || s.counts["pairs that moved"] == 0 {
		t.Errorf("%d pairs were returned, the client has asked for the table %d times, and %d pairs have moved", returned, asked, s.counts["pairs that moved"])
	}
}

// TestBroadcastsOfAClientWhenANodeLeaves sends messages of a client to the instances of all
// nodes, while there are three nodes, after one has ended and before the client knows it, and
// when the client knows that the node has left.
func TestBroadcastsOfAClientWhenANodeLeaves(t *testing.T) {
	for leaves := range 3 { // no node is special
		d := &design{nodes: 3, messages: 1, batch: 4, parts: []designPart{
			{name: "p0", external: true, placement: EveryNode},
			{name: "p1", instances: 2, placement: EveryNode, with: 1},
		}, edges: []designEdge{{from: 0, to: 1, capacity: 64}}}
		d.groups = d.components()
		s := &clientSim{simulation: simulate(1, d)}
		s.clientsOnly, s.until = true, time.Hour
		s.ledger.edges = append(s.ledger.edges, make([]edgeLedger, len(d.edges)))
		s.ledger.restarted = true // the client's copies for itself have no receiver
		s.forgets = true
		s.at(clientStart, "start a client", func() {
			s.startClient(0)
			s.clients[0].sendAt = neverExpires
		})
		broadcast := func() {
			c := s.clients[0]
			m := s.newParcel(c, 0, 0, allInstances, 0)
			for i := range d.parts[1].instances + 1 {
				e := c.top.externals[0]
				to, err := e.entry(c.top, 0, 1, i)
				if err != nil {
					t.Fatal(err)
				}
				l := to.lane(0)
				target := piper.Target{Gate: &to.Gate, Head: l.head()}
				if err := e.x.Lock(t.Context(), target); err != nil {
					t.Fatal(err)
				}
				l.put(to.number(), piper.NoReply[parcel, parcel](m))
				e.x.Commit(target)
			}
			c.active = true
		}
		const at = 10 * time.Second
		gone := nodeName(leaves)
		expect := func(when string, seq uint64, kept uint64, dropped uint64) {
			t.Helper()
			for i := range d.nodes {
				for k := range d.parts[1].instances {
					got := s.ledger.seen[seenKey{streamKey{s.clients[0].index, 0, 0, 1, allInstances}, i, k}]
					if want := seq; i == leaves && got != 1 || i != leaves && got != want {
						t.Errorf("%s: p1/%d on %s has handled %d messages of %d", when, k, nodeName(i), got, want)
					}
				}
			}
			f := s.clients[0].top.pool.Snapshot().Edges[0]
			if p := s.clients[0].core.peers[gone]; p.kept != kept || p.dropped != dropped || uint64(f.Len) != kept || f.Dropped != dropped {
				t.Errorf("%s: %d messages for %s are kept and %d dropped, want %d and %d; %+v", when, p.kept, gone, p.dropped, kept, dropped, f)
			}
		}
		s.at(at, "a broadcast", broadcast)
		s.at(at+time.Second, "a node leaves", func() {
			expect("all nodes run", 1, 0, 0)
			s.nodes[leaves].stop()
		})
		s.at(at+time.Minute, "a broadcast, before the client knows it", func() {
			if s.nodes[leaves].state != simGone {
				t.Fatal("the node has not left")
			}
			s.clients[0].post(func(h *happened) { h.alive = append(h.alive, alive{node: gone}) })
			broadcast()
		})
		s.at(at+2*time.Minute, "the client learns it", func() {
			expect("before the client knows it", 2, 1, 0)
			n := s.nodes[leaves]
			if err := table.Leave(t.Context(), s.nodes[(leaves+1)%d.nodes].table, n.name, n.boot); err != nil {
				t.Fatal(err)
			}
			s.clients[0].post(func(h *happened) { h.members = true })
		})
		s.at(at+2*time.Minute+time.Second, "a broadcast", func() {
			expect("when the client knows it", 2, 0, 1)
			broadcast()
		})
		s.at(at+2*time.Minute+2*time.Second, "look", func() { expect("afterwards", 3, 0, 1) })
		s.stopAll(at + 3*time.Minute)
		s.run()
		if f := s.failure(); f != "" {
			t.Fatal(f)
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
		clients := &asNode(s.nodes[0].core).clients
		known, slots = len(clients.known), clients.slots
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
