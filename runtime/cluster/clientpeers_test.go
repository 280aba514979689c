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
	if s := c.peers[name].session.Stats(); s.Malformed != 0 {
		t.Errorf("the session has refused %d frames", s.Malformed)
	}
	c.step(clientWindow+time.Second, &happened{})
	if c.peers[name] == nil {
		t.Error("the client was forgotten, although it was there 2 seconds ago")
	}
	c.step(later+clientWindow+expireEvery, &happened{})
	if c.peers[name] != nil {
		t.Error("the client was not forgotten")
	}
}
