package cluster

import (
	"testing"
	"time"
)

// TestEmptyFrameOfAClient passes on what a client sends every few seconds to a node that it
// reaches only through another one. The node must remember the client, and must not end its
// connection: it may have one again by now.
func TestEmptyFrameOfAClient(t *testing.T) {
	const name = clientPrefix + "web"
	n := newPhaseNodes(t, "n1")
	n.start("n1").open = true
	c := n.cores["n1"]
	c.clients.drop = func(name string) { t.Errorf("the connection of %s is ended", name) }
	c.step(0, &happened{alive: []alive{{node: name, alive: true, passedOn: true}}})
	const later = clientWindow - time.Second
	c.step(later, &happened{frames: []frame{{from: name}}})
	if s := c.clients.known[name].session.Stats(); s.Malformed != 0 {
		t.Errorf("the session has refused %d frames", s.Malformed)
	}
	c.step(clientWindow+time.Second, &happened{})
	if c.clients.known[name] == nil {
		t.Error("the client was forgotten, although it was there 2 seconds ago")
	}
	c.step(later+clientWindow+expireEvery, &happened{})
	if c.clients.known[name] != nil {
		t.Error("the client was not forgotten")
	}
}

// TestEndDoesNotWaitForVanishedClient ends a node while a client does not acknowledge a frame
// whose connection is at another node. Nothing tells the node that the client has vanished.
func TestEndDoesNotWaitForVanishedClient(t *testing.T) {
	const name = clientPrefix + "web"
	n := newPhaseNodes(t, "n1")
	n.start("n1").open = true
	node := n.cores["n1"]
	client, pool := n.startClient(name)
	pool.open = true
	step := func(c *core, h happened) {
		h.frames, n.frames[c.node] = n.frames[c.node], nil
		c.step(n.now, &h)
	}
	step(node.core, happened{alive: []alive{{node: name, alive: true, passedOn: true}}})
	step(client, happened{alive: []alive{{node: "n1", alive: true}}})
	for ; !node.clients.known[name].found; n.now += time.Millisecond {
		step(node.core, happened{})
		step(client, happened{})
		if n.now > time.Minute {
			t.Fatal("the client was not found")
		}
	}
	node.clients.known[name].send(laneControl, []byte{controlDraining})
	flushed := make(chan struct{})
	began := n.now
	step(node.core, happened{ended: true, flushed: flushed})
	for node.flushed != nil {
		n.now += 100 * time.Millisecond
		step(node.core, happened{})
		if n.now-began > 2*farewellShort {
			t.Fatal("the node waits for the client")
		}
	}
	if n.now-began < farewellShort {
		t.Errorf("the node has waited %v for the client, want %v", n.now-began, farewellShort)
	}
}
