package cluster

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
)

// clientsOf counts the clients whose process a node has found, and those that it can reach.
func clientsOf(n *Node) (found, reachable int) {
	n.running.Lock()
	defer n.running.Unlock()
	for _, p := range asNode(n.core).clients.known {
		if !p.found {
			continue
		}
		if found++; p.reachable {
			reachable++
		}
	}
	return found, reachable
}

// TestKilledClientsMakeRoom kills as many clients as a node may have. The node remembers them,
// because they may come back. But a new client takes the place of the one that was killed first.
func TestKilledClientsMakeRoom(t *testing.T) {
	t.Parallel() // it waits for connections
	const most = 3
	p := newProgram()
	p.gated = true
	address, tables := loopback.Addresses(t, 1)[0], table.NewMemory()
	open := func(s piper.NodeSettings) (*Node, error) {
		c := p.config(1, t.TempDir(), tables)
		c.Nodes["n1"] = address
		s.Logger = slog.New(slog.DiscardHandler)
		return Open(c, s)
	}
	top := func(option piper.Option) *top {
		x, err := p.newTop(open, option)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	await := func(what string, condition func() bool) {
		t.Helper()
		poll := time.NewTicker(time.Millisecond)
		defer poll.Stop()
		for end := time.Now().Add(time.Minute); !condition(); <-poll.C {
			if time.Now().After(end) {
				t.Fatal("timeout while waiting for ", what)
			}
		}
	}
	node := top(piper.Node("n1"))
	node.node.clients.most = most
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = node.pool.Run(ctx) })
	defer func() {
		stop()
		running.Wait()
	}()
	start := func() *Node {
		c := top(AsClient(ClientConfig{Wait: time.Minute}))
		x, err := StartClient(c.node, c.pool.Run)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = x.Close() })
		return c.node
	}
	var killed []string
	for i := range most {
		c := start()
		killed = append(killed, c.settings.node)
		await("a client", func() bool { found, _ := clientsOf(node.node); return found == i+1 })
		_ = c.client.transport.Close() // its process says nothing more
		await("the end of its connection", func() bool { _, reachable := clientsOf(node.node); return reachable == 0 })
	}
	c := start()
	await("the connection of a new client", func() bool { _, reachable := clientsOf(node.node); return reachable == 1 })
	node.node.running.Lock()
	defer node.node.running.Unlock()
	for i, name := range killed {
		if remembers := asNode(node.node.core).clients.known[name] != nil; remembers != (i > 0) {
			t.Errorf("the node remembers client %d: %v", i, remembers)
		}
	}
	if asNode(node.node.core).clients.known[c.settings.node] == nil {
		t.Error("the node does not know the new client")
	}
}

// TestRoomForClients: a client makes room only if its connection has ended and all its messages
// are handled. The certificate with the most such clients gives room first, so that a client that
// connects often does not take the places of others. Then a client that has received everything comes
// first, and then the one that has ended first.
func TestRoomForClients(t *testing.T) {
	type known struct {
		name, owner string
		connected   bool
		passedOn    bool
		heardAt     time.Duration // of a client that another node passes on
		lostAt      time.Duration
		handled     bool
		owed        bool // it has not received everything
	}
	const now = time.Hour
	ended := known{owner: "a", lostAt: now - time.Minute, handled: true}
	with := func(name string, change func(k *known)) known {
		k := ended
		k.name = name
		change(&k)
		return k
	}
	same := func(*known) {}
	for _, test := range []struct {
		what    string
		known   []known
		room    roomFor
		forgets string
	}{
		{"no client", nil, roomFor{owner: "x"}, ""},
		{"a connected client", []known{with("A", func(k *known) { k.connected = true })}, roomFor{owner: "x"}, ""},
		{"messages that wait for their handler", []known{with("A", func(k *known) { k.handled = false })}, roomFor{owner: "x"}, ""},
		{"one that has ended", []known{with("A", same)}, roomFor{owner: "x"}, "A"},
		{"the oldest", []known{with("A", same), with("B", func(k *known) { k.lostAt -= time.Second }), with("C", same)}, roomFor{owner: "x"}, "B"},
		{"one that was told everything", []known{with("A", func(k *known) { k.lostAt, k.owed = 0, true }), with("B", same)}, roomFor{owner: "x"}, "B"},
		{"only one that was not told everything", []known{with("A", func(k *known) { k.owed = true })}, roomFor{owner: "x"}, "A"},
		{"the certificate with most", []known{
			with("A", func(k *known) { k.lostAt = 0 }), with("B", func(k *known) { k.owner = "b" }), with("C", func(k *known) { k.owner = "b" }),
		}, roomFor{owner: "x"}, "B"},
		{"connected clients of a certificate do not count", []known{
			with("A", func(k *known) { k.lostAt = 0 }), with("B", func(k *known) { k.owner = "b" }), with("C", func(k *known) { k.owner, k.connected = "b", true }),
		}, roomFor{owner: "x"}, "A"},
		{"a certificate with too many clients", []known{with("A", func(k *known) { k.owner, k.lostAt = "b", 0 }), with("B", same)}, roomFor{owner: "a", own: true}, "B"},
		{"a certificate with too many clients that are connected", []known{with("B", func(k *known) { k.owner = "b" })}, roomFor{owner: "a", own: true}, ""},
		{"another node has passed on a frame", []known{with("A", func(k *known) { k.connected, k.passedOn, k.heardAt = true, true, now-relayedMax+1 })}, roomFor{owner: "x"}, ""},
		{"another node has passed on nothing for long", []known{with("A", func(k *known) { k.connected, k.passedOn, k.heardAt = true, true, now-relayedMax })}, roomFor{owner: "x"}, "A"},
	} {
		n := newPhaseNodes(t, "n1")
		n.start("n1").open = true
		c := n.cores["n1"]
		owners := map[string]string{}
		c.clients.owner = func(name string) string { return owners[name] }
		var told []string
		c.clients.forgotten = func(name string) bool {
			told = append(told, name)
			return true
		}
		for _, k := range test.known {
			name := clientPrefix + k.name
			owners[name] = k.owner
			c.step(0, &happened{alive: []alive{{node: name, alive: true}}})
			p := c.clients.known[name]
			p.found, p.reachable, p.passedOn, p.lostAt, p.heardAt = true, k.connected, k.passedOn, k.lostAt, k.heardAt
			in := &inPair{peer: &p.peer, put: 2}
			if in.handled.Store(2); !k.handled {
				in.put++
			}
			p.pairs[border.Pair{}] = in
			if k.owed {
				p.send(laneControl, []byte{controlLeft})
			}
		}
		done := make(chan bool, 1)
		test.room.done = done
		c.now = now
		c.clients.makeRoom(&test.room)
		want := []string(nil)
		if test.forgets != "" {
			want = []string{clientPrefix + test.forgets}
		}
		if made := <-done; made != (want != nil) || !slices.Equal(told, want) || len(c.ordered) != len(test.known)-len(want) {
			t.Errorf("%s: the node forgets %v, knows %d clients and says %v; want %v", test.what, told, len(c.ordered), made, want)
		}
	}
}
