package nodetests_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/clusterclient"
)

// TestClusterClientTwoClients sends messages and asks with two clients at the same time.
func TestClusterClientTwoClients(t *testing.T) {
	t.Parallel()
	const each = 500
	s := startServers(t).startAll()
	var running sync.WaitGroup
	for i := range 2 {
		running.Go(func() {
			c, err := clusterclient.NewClient(s.config())
			if err != nil {
				t.Error(err)
				return
			}
			for n := range each {
				if err := c.Web().SendAdd(t.Context(), clusterclient.Add{Client: fmt.Sprint("c", i), N: n, Name: fmt.Sprint("name-", i, "-", n%10)}); err != nil {
					t.Error(err)
				}
			}
			for n := range 10 {
				total, err := c.Web().AskQuery(t.Context(), clusterclient.Query{Name: fmt.Sprint("name-", i, "-", n)})
				if err != nil || total.N != each/10 {
					t.Errorf("client %d: got %+v and the error %v, want %d", i, total, err, each/10)
				}
			}
			if r, err := c.Phone().AskOrder(t.Context(), clusterclient.Order{Client: fmt.Sprint("c", i), N: 7}); err != nil || r.N != 7 {
				t.Errorf("client %d: got %+v and the error %v", i, r, err)
			}
			s.closeAll(c)
			if err := c.Web().SendAdd(context.Background(), clusterclient.Add{}); err == nil {
				t.Error("a client that is closed accepts a message")
			}
		})
	}
	running.Wait()
	for i := range 2 {
		if seen := s.effects("counter", fmt.Sprint("c", i)); len(seen) != each {
			t.Errorf("client %d: %d messages have effects, want %d", i, len(seen), each)
		}
	}
}

// sender sends numbered messages until it is stopped.
type sender struct {
	sent int
	stop chan struct{}
	done chan struct{}
}

// startSender sends messages to all instances of counter.
func startSender(t *testing.T, c *clusterclient.Client, from string) *sender {
	x := &sender{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(x.done)
		for {
			select {
			case <-x.stop:
				return
			default:
			}
			if err := c.Web().SendAdd(t.Context(), clusterclient.Add{Client: from, N: x.sent, Name: fmt.Sprint(x.sent % 97)}); err != nil {
				t.Error(err)
				return
			}
			if x.sent++; x.sent%100 == 0 {
				<-time.After(time.Millisecond) // so that the files stay small
			}
		}
	}()
	return x
}

// end stops the sender and returns the number of messages.
func (x *sender) end() int {
	close(x.stop)
	<-x.done
	return x.sent
}

// TestClusterClientServerIsKilled kills a node with SIGKILL while a client sends to it and waits for its
// reply, and starts it again. The client notices the death without a probe: the messages
// wait, and go to the next process.
func TestClusterClientServerIsKilled(t *testing.T) {
	t.Parallel()
	s := startServers(t).startAll()
	config := s.config()
	config.Retry = 5 * time.Minute
	c := s.client(config)
	s.awaitAll(c)
	x := startSender(t, c, "c")
	answer := make(chan error, 1)
	go func() {
		_, err := c.Phone().AskOrder(t.Context(), clusterclient.Order{Client: "c", N: 1, Until: s.path("go")})
		answer <- err
	}()
	s.await("the arrival of the order", func() bool {
		return c.Snapshot().Edges[clusterclient.EdgePhoneDeskOrder].Len == 1 && len(s.effects("counter", "c")) > 1000
	})
	first := bootOf(c, 1)
	s.kill(1)
	killed := time.Now()
	s.await("the notice of its death", func() bool { return !reaches(c, 1) })
	t.Logf("noticed after %v", time.Since(killed))
	s.write("go", nil)
	s.start(1)
	if err := <-answer; err != nil {
		t.Errorf("the call to the node that was killed: %v", err)
	}
	s.await("the new process in the address table", func() bool { b := bootOf(c, 1); return b != first && reaches(c, 1) })
	n := x.end()
	s.closeAll(c)
	seen, twice := s.effects("counter", "c"), 0
	for i := range n {
		if seen[i] == 0 {
			t.Errorf("message %d of %d was never handled", i, n)
		}
		if seen[i] > 1 {
			twice++
		}
	}
	s.checkOnceInEachProcess("c")
	t.Logf("%d messages, %d of them were handled by both processes", n, twice)
}

// TestClusterClientWaysAreCut cuts the connections of a client to some nodes, and then to all of them,
// while it sends and asks. Messages to a node that it cannot reach go through another node.
// Each message is handled once, whatever way it took.
func TestClusterClientWaysAreCut(t *testing.T) {
	t.Parallel()
	s := startServers(t).startAll()
	config, w := s.config(), newWay()
	config.Dial = w.dial
	c := s.client(config)
	s.awaitAll(c)
	x := startSender(t, c, "c")
	orders := 0
	for round := range 6 {
		cut := []int{1, 0b010, 0b101, 0b111, 0b110, 0b011}[round]
		for i, address := range s.addresses {
			w.set(address, cut>>i&1 != 0)
		}
		if cut != 0b111 { // through the node that is left
			if r, err := c.Web().AskOrder(t.Context(), clusterclient.Order{Client: "c", N: orders}); err != nil || r.N != orders {
				t.Errorf("round %d: the receipt is %+v, and the error is %v", round, r, err)
			}
			orders++
		} else {
			s.await("the notice that no node can be reached", func() bool { return s.reached(c) == 0 })
		}
		before := c.Snapshot().Edges[clusterclient.EdgeWebCounterAdd].Received
		for i, address := range s.addresses {
			if cut == 0b111 {
				w.set(address, i == 0)
			}
		}
		s.await("more effects", func() bool { return c.Snapshot().Edges[clusterclient.EdgeWebCounterAdd].Received > before+2000 })
	}
	n := x.end()
	s.closeAll(c)
	seen := s.effects("counter", "c")
	for i := range n {
		if seen[i] != 1 {
			t.Errorf("message %d of %d was handled %d times", i, n, seen[i])
		}
	}
	if seen := s.effects("desk", "c"); len(seen) != orders {
		t.Errorf("%d orders were handled, want %d", len(seen), orders)
	}
	t.Logf("%d messages", n)
}
