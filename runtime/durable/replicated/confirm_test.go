package replicated_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/replicated"
)

// roles returns the leader and a follower.
func roles(t *testing.T, nodes []*replicated.Node) (leader, follower *replicated.Node) {
	t.Helper()
	until(t, nodes[0], create("first"))
	i := slices.IndexFunc(nodes, leads)
	if i < 0 {
		t.Fatal("no node leads")
	}
	return nodes[i], nodes[(i+1)%len(nodes)]
}

func leads(n *replicated.Node) bool { return n.Status().Role == "leader" }

// notify settles a promise that has a listener.
func notify(t *testing.T, n *replicated.Node, id, address string) {
	t.Helper()
	op := create(id)
	op.Tags = map[string]string{protocol.TagExternal: "true"}
	until(t, n, op)
	until(t, n, protocol.RegisterListener{Awaited: id, Address: address})
	until(t, n, protocol.PromiseSettle{ID: id, State: protocol.Resolved})
}

// TestConfirmAtAFollower: a message that the receiver at a follower has not confirmed goes
// to its next connection, and a message that was confirmed does not.
func TestConfirmAtAFollower(t *testing.T) { onPeers(t, testConfirmAtAFollower) }

func testConfirmAtAFollower(t *testing.T, nodes []*replicated.Node) {
	leader, follower := roles(t, nodes)
	notify(t, follower, "p", "poll://any@g")
	for attempt := range 3 {
		c := connectConfirming(t, follower)
		if m, _ := receive(t, c); m.Unblock == nil || m.Unblock.ID != "p" {
			t.Fatalf("attempt %d: %+v", attempt, m)
		}
		if attempt == 2 {
			c.Confirmed()
			waitFor(t, func() bool { return leader.Stats().Polled.Delivered == 1 })
		}
		c.Close()
	}
	notify(t, follower, "q", "poll://any@g")
	c := connectConfirming(t, follower)
	defer c.Close()
	if m, _ := receive(t, c); m.Unblock == nil || m.Unblock.ID != "q" {
		t.Errorf("after p was confirmed: %+v", m)
	}
}

func connectConfirming(t *testing.T, n protocol.Backend) protocol.Confirmer {
	t.Helper()
	c, err := n.Connect("g", "worker")
	if err != nil {
		t.Fatal(err)
	}
	confirmer := c.(protocol.Confirmer)
	confirmer.Confirm()
	return confirmer
}

// waitFor polls a condition that no event announces.
func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the condition does not become true")
		}
	}
}

// fakeLeader is a leader that sends one message over a connection of a node. It calls
// confirm for a confirmation, and closes ended when the connection has ended.
func fakeLeader(confirm func() error, ended chan<- struct{}) protocol.Backend {
	return replicated.NewPeer(func(ctx context.Context, _ string, request []byte, receive func([]byte) error) error {
		if request[0] == replicated.CallConfirmed {
			return confirm()
		}
		defer close(ended)
		m := protocol.Message{Unblock: &protocol.Promise{ID: "p", State: protocol.Resolved}}
		if err := receive(protocol.AppendMessage(nil, &m, "")); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
}

// TestLostConfirmation: when a confirmation cannot be sent, the connection ends, because
// the leader waits for it. The leader then sends the message again.
func TestLostConfirmation(t *testing.T) {
	c := connectConfirming(t, fakeLeader(func() error { return errDown }, make(chan struct{})))
	defer c.Close()
	if m, _ := receive(t, c); m.Unblock == nil {
		t.Fatalf("%+v", m)
	}
	c.Confirmed()
	if m, ok := receive(t, c); ok {
		t.Errorf("the connection goes on with %+v", m)
	}
}

// TestConfirmationBeforeClose: a message that was confirmed just before Close is confirmed
// at the leader before the call with the messages ends.
func TestConfirmationBeforeClose(t *testing.T) {
	ended, late := make(chan struct{}), make(chan bool, 1)
	c := connectConfirming(t, fakeLeader(func() error {
		select {
		case <-ended:
			late <- true
		default:
			late <- false
		}
		return nil
	}, ended))
	receive(t, c)
	c.Confirmed()
	c.Close()
	if m, ok := receive(t, c); ok {
		t.Errorf("after Close: %+v", m)
	}
	select {
	case late := <-late:
		if late {
			t.Error("the connection ended before the confirmation")
		}
	default:
		t.Error("the message was not confirmed")
	}
}
