package cluster

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkStep measures a step in which nothing has happened, on a node with many others.
func BenchmarkStep(b *testing.B) {
	for _, peers := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(peers), func(b *testing.B) {
			names := []string{"n0"}
			for i := range peers {
				names = append(names, fmt.Sprintf("n%d", i+1))
			}
			n := newPhaseNodes(nil, names...)
			n.start("n0")
			c := n.cores["n0"]
			c.emit = func(string, []byte) {}
			c.membersChanged()
			now := time.Second
			for b.Loop() {
				now += time.Microsecond
				c.step(now, &happened{})
				c.next()
			}
		})
	}
}

// TestDrainingNodeLooksRarely handles many messages on a node that drains. It must not look
// at all its instances after each of them.
func TestDrainingNodeLooksRarely(t *testing.T) {
	n := newPhaseNodes(t, "n1", "n2")
	p := n.start("n1")
	p.busy = true
	c := n.cores["n1"]
	c.step(0, &happened{stopping: true})
	const steps, seconds = 10_000, 1
	for i := range time.Duration(steps) {
		c.step((i+1)*seconds*time.Second/steps, &happened{})
	}
	if most := int(seconds * time.Second / drainLook); p.looks == 0 || p.looks > most+1 {
		t.Errorf("the node has looked %d times whether it is idle, want 1 to %d", p.looks, most+1)
	}
}

// TestClosedClientEndsWithoutDelay closes a client. It must end when its senders are closed
// and its messages are settled: it has no signals of other nodes to wait for.
func TestClosedClientEndsWithoutDelay(t *testing.T) {
	n := newPhaseNodes(t, "client", "n1")
	c, p := n.startClient("client")
	c.step(0, &happened{stopping: true})
	if c.left {
		t.Fatal("the client has ended before its senders were closed")
	}
	p.closed = true
	c.step(closeEvery, &happened{})
	if !c.left {
		t.Error("the client waits although all its messages are settled")
	}
}
