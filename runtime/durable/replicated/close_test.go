package replicated_test

import (
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/replicated"
)

// lastCall is the backend of another node, whose Close waits for a call of that node to this one.
type lastCall struct {
	protocol.Backend
	to *replicated.Node
}

func (c lastCall) Close() error {
	_, err := c.to.Local().Connect("workers", "w1")
	if err == nil {
		panic("a node that is closed has accepted a connection")
	}
	return nil
}

// TestCloseDuringACall closes a node while it has a call of another node. Close waits for the call, so it
// must not hold a lock that the call needs.
func TestCloseDuringACall(t *testing.T) {
	g := newGroup(t)
	leader := g.leader()
	name := names[0]
	if name == leader {
		name = names[1]
	}
	n := g.node(name)
	g.mu.Lock()
	g.wrap = func(b protocol.Backend) protocol.Backend { return lastCall{b, n} }
	g.mu.Unlock()
	g.do(name, create("a")) // from now on it has a backend for the leader
	closed := make(chan struct{})
	go func() {
		g.stop(name)
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("Close waits for a call that waits for Close")
	}
}
