package replicated_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/replicated"
	"github.com/topogen/topogen/runtime/durable/store"
)

// patience is how long a test waits for something that must happen.
const patience = time.Minute

// lose makes the server of a node silent.
func (g *group) lose(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost = name
}

func (g *group) isLost(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lost == name
}

// silent is a connection to a host that was lost: it neither brings messages nor ends.
type silent struct{}

func (silent) Messages() <-chan protocol.Message { return nil }
func (silent) Close()                            {}

// follower returns a node that does not lead.
func (g *group) follower(leader string) *replicated.Node {
	if leader == names[0] {
		return g.node(names[1])
	}
	return g.node(names[0])
}

// receive returns the next message of a connection.
func receive(t *testing.T, c protocol.Connection) (m protocol.Message, ok bool) {
	t.Helper()
	select {
	case m, ok = <-c.Messages():
		return m, ok
	case <-time.After(patience):
		t.Fatal("no message has arrived")
		return m, false
	}
}

// TestLostHost: a node that has forwarded an operation to a leader whose host is lost does
// not wait for its answer when another node leads, and its connections follow the new
// leader.
func TestLostHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		leader := g.leader()
		follower := g.follower(leader)
		g.lose(leader)
		c, err := follower.Connect("g", "worker")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		outcome := make(chan error, 1)
		go func() {
			_, err := follower.Do(t.Context(), create("p"))
			outcome <- err
		}()
		time.AfterFunc(100*time.Millisecond, func() { g.cut(leader, true) }) // most probably after the operation was forwarded
		defer g.cut(leader, false)
		select {
		case err := <-outcome:
			if err != nil && !strings.Contains(err.Error(), "the leader has changed") {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the operation has no outcome")
		}
		op := create("task")
		op.Tags = map[string]string{protocol.TagTarget: "poll://any@g"}
		for ; ; time.Sleep(time.Millisecond) {
			if r, err := follower.Do(t.Context(), op); err == nil && r.Status == protocol.OK {
				break
			}
		}
		if m, _ := receive(t, c); m.Execute == nil || m.Execute.ID != "task" {
			t.Errorf("the worker received %+v", m)
		}
	})
}

// TestReadOfALeaderThatIsCutOff: a leader that cannot reach the others does not answer
// reads, because another node may lead already.
func TestReadOfALeaderThatIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.do("n1", create("p"))
		leader := g.leader()
		g.cut(leader, true)
		defer g.cut(leader, false)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if r, err := g.node(leader).Local().Do(ctx, protocol.PromiseGet{ID: "p"}); err == nil && r.Status == protocol.OK {
			t.Error("the leader answered")
		}
	})
}

// TestEmptyValue: a record without a value is not a record that was deleted.
func TestEmptyValue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		s, err := replicated.Begin(t.Context(), g.node(g.leader()), "test")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Update(func(tx store.Tx) error { tx.Put(core.Meta, []byte("key"), nil); return nil }); err != nil {
			t.Fatal(err)
		}
		err = s.View(func(tx store.Tx) error {
			if tx.Get(core.Meta, []byte("key")) == nil {
				t.Error("the record is missing")
			}
			return nil
		})
		if err != nil && !errors.Is(err, store.ErrFailed) { // the node may have begun another epoch
			t.Error(err)
		}
	})
}

// TestEnginesThatFail: a node whose engine fails at once begins the next one after a while,
// because each of them is an entry of the log.
func TestEnginesThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		leader := g.node(g.leader())
		damage := func(tx store.Tx) error {
			tx.Put(core.PromiseTimeouts, append(make([]byte, 8), 'p'), []byte("damage"))
			return nil
		}
		for begin := time.Now(); ; time.Sleep(time.Millisecond) {
			s, err := replicated.Begin(t.Context(), leader, "test")
			if err != nil {
				t.Fatal(err)
			}
			if err = s.Update(damage); err == nil {
				break
			}
			if !errors.Is(err, store.ErrFailed) || time.Since(begin) > patience { // else the node has begun another epoch
				t.Fatal(err)
			}
		}
		epoch := replicated.Epoch(leader)
		until := func(epoch uint64) time.Time {
			for begin := time.Now(); replicated.Epoch(leader) < epoch; {
				if time.Since(begin) > patience {
					t.Fatal("the node does not begin again")
				}
				time.Sleep(time.Millisecond)
			}
			return time.Now()
		}
		const engines = 5
		began := until(epoch + 1) // the engine of the damaged epoch finds the damage at its next tick
		if passed := until(epoch + 1 + engines).Sub(began); passed < (engines-1)*replicated.RetryInterval {
			t.Errorf("%d engines in %v", engines, passed)
		}
	})
}

// TestStats: the counters of a node include those of its earlier engines.
func TestStats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.do("n1", create("p"))
		leader := g.leader()
		before := g.node(leader).Stats()
		if before.Operations == 0 || before.Commits.Count == 0 {
			t.Errorf("%+v", before)
		}
		if _, err := replicated.Begin(t.Context(), g.node(leader), "test"); err != nil {
			t.Fatal(err)
		}
		// Only the leader's own engine can notice that another one has replaced it: the state
		// names a server that does not exist.
		for i := 0; ; i++ {
			time.Sleep(time.Millisecond)
			r, err := g.node(names[i%len(names)]).Do(t.Context(), create("q"))
			if err == nil && r.Status == protocol.OK {
				break
			}
		}
		var sum uint64
		for _, name := range names {
			sum += g.node(name).Stats().Operations
		}
		if after := g.node(leader).Stats(); after.Operations < before.Operations || sum <= before.Operations {
			t.Errorf("%d operations, then %d, %d at all nodes", before.Operations, after.Operations, sum)
		}
	})
}

// TestConnectionsOfANode: names that no address can have and connections beyond the limit
// are refused, and a process that connects again replaces its earlier connection.
func TestConnectionsOfANode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := openGroup(t, engine.Config{ConnectionsMax: 2}, 20*time.Second)
		leader := g.leader()
		for _, n := range []*replicated.Node{g.node(leader), g.follower(leader)} {
			if _, err := n.Connect("a/b", "p"); !errors.Is(err, engine.ErrConnectionNames) {
				t.Error(err)
			}
			first, err := n.Connect("g", "p")
			if err != nil {
				t.Fatal(err)
			}
			second, err := n.Connect("g", "p")
			if err != nil {
				t.Fatal(err)
			}
			if m, ok := receive(t, first); ok {
				t.Errorf("the earlier connection has received %+v", m)
			}
			third, err := n.Connect("g", "q")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := n.Connect("g", "r"); !errors.Is(err, engine.ErrConnections) {
				t.Error(err)
			}
			second.Close()
			third.Close()
		}
	})
}

// TestConfirm: a message that the receiver has not confirmed goes to its next connection.
func TestConfirm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		n := g.node(g.leader())
		op := create("p")
		op.Tags = map[string]string{protocol.TagExternal: "true"}
		g.do("n1", op)
		g.do("n1", protocol.RegisterListener{Awaited: "p", Address: "poll://any@g"})
		g.do("n1", protocol.PromiseSettle{ID: "p", State: protocol.Resolved})
		for attempt := range 3 {
			c, err := n.Connect("g", "p")
			if err != nil {
				t.Fatal(err)
			}
			confirmer := c.(protocol.Confirmer)
			confirmer.Confirm()
			if m, _ := receive(t, c); m.Unblock == nil || m.Unblock.ID != "p" {
				t.Fatalf("attempt %d: %+v", attempt, m)
			}
			if attempt == 2 {
				confirmer.Confirmed()
			}
			c.Close()
		}
	})
}
