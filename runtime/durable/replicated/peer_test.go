package replicated_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/replicated"
	"github.com/topogen/topogen/runtime/raft"
)

// onPeers runs a test with three nodes without servers, in virtual time. At landing it also runs
// it with nodes that reach each other over the connections of the group.
func onPeers(t *testing.T, test func(t *testing.T, nodes []*replicated.Node)) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := unopened(t, engine.Config{}, 20*time.Second)
			g.calls = true
			var nodes []*replicated.Node
			for _, name := range names {
				g.start(name)
				nodes = append(nodes, g.node(name))
			}
			test(t, nodes)
		})
	})
	t.Run("connections", func(t *testing.T) {
		speed.Landing(t)
		test(t, peers(t))
	})
}

// peers is three nodes without servers, which reach each other over the connections of the
// group.
func peers(t *testing.T) (nodes []*replicated.Node) {
	t.Helper()
	t.Parallel() // they wait for an election
	addresses, dir := map[string]string{}, t.TempDir()
	for i, address := range loopback.Addresses(t, len(names)) {
		addresses[names[i]] = address
	}
	// With the race detector, a large update takes longer than 100 ms.
	timeout := speed.Pick(t, 100*time.Millisecond, 500*time.Millisecond, 500*time.Millisecond)
	for _, name := range names {
		n, err := replicated.Open(replicated.Config{
			Raft: raft.Config{
				Topology: "shop", Group: "promises", Node: name, Peers: addresses, Dir: dir,
				Logger: slog.New(slog.DiscardHandler), ElectionTimeout: timeout, Heartbeat: timeout / 10,
			},
			Engine: engine.Config{Logger: slog.New(slog.DiscardHandler)},
			Wait:   20 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_ = n.Close(ctx)
		})
	}
	return nodes
}

// until carries out an operation until it has an answer.
func until(t *testing.T, b protocol.Backend, op protocol.Operation) protocol.Result {
	t.Helper()
	for ; ; time.Sleep(time.Millisecond) {
		r, err := b.Do(t.Context(), op)
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		if err == nil && !lost(r) {
			return r
		}
	}
}

// untilAll repeats a batch until there is a leader that has carried it out completely. All
// operations may be repeated.
func untilAll(t *testing.T, n *replicated.Node, ops []protocol.Operation) []protocol.Result {
	t.Helper()
	for ; ; time.Sleep(time.Millisecond) {
		results, err := n.DoAll(t.Context(), ops)
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		if err == nil && !slices.ContainsFunc(results, lost) {
			return results
		}
	}
}

// lost reports whether the leader was lost or has stopped.
func lost(r protocol.Result) bool {
	return r.Status == protocol.Unavailable || r.Status == protocol.Internal
}

// TestPeers: operations at any node are carried out by the leader, and their results are
// complete, whatever their size.
func TestPeers(t *testing.T) {
	nodes := peers(t)
	large := strings.Repeat("x", 600<<10) // several chunks of a call
	for i, n := range nodes {
		op := create(fmt.Sprint("p", i))
		op.Param.Data = &large
		if r := until(t, n, op); r.Status != protocol.OK || r.Promise == nil || r.Promise.ID != op.ID {
			t.Fatalf("node %d: %d %s", i, r.Status, r.Error)
		}
		for j, other := range nodes {
			r := until(t, other, protocol.PromiseGet{ID: op.ID})
			if r.Status != protocol.OK || r.Promise.Param.Data == nil || *r.Promise.Param.Data != large {
				t.Errorf("node %d: %d %s", j, r.Status, r.Error)
			}
		}
		if r := until(t, n, protocol.PromiseGet{ID: "missing"}); r.Status != protocol.NotFound || r.Error == "" {
			t.Errorf("node %d: %+v", i, r)
		}
		if r, err := n.Do(t.Context(), protocol.PromiseGet{}); err != nil || r.Status != protocol.BadRequest {
			t.Errorf("node %d: %+v, %v", i, r, err)
		}
	}
}

// TestPeersBatch: a batch has one result for each operation, also if it has more operations than
// one call may have.
func TestPeersBatch(t *testing.T) { onPeers(t, testPeersBatch) }

func testPeersBatch(t *testing.T, nodes []*replicated.Node) {
	_, follower := roles(t, nodes)
	var ops []protocol.Operation
	for range 520 {
		ops = append(ops, protocol.PromiseGet{ID: "first"}, protocol.PromiseGet{ID: "missing"})
	}
	results := untilAll(t, follower, ops)
	if len(results) != len(ops) {
		t.Fatalf("%d results, want %d", len(results), len(ops))
	}
	for i, r := range results {
		if want := i%2 == 0; (r.Status == protocol.OK) != want {
			t.Fatalf("operation %d: %d %s", i, r.Status, r.Error)
		}
	}
}

// TestPeersLargeBatch: a batch has one result for each operation, also if it has more bytes than
// one call may have.
func TestPeersLargeBatch(t *testing.T) {
	speed.Landing(t) // 40 MB
	speed.NoRace(t)  // the other tests of peers run with it
	_, follower := roles(t, peers(t))
	large := strings.Repeat("x", 3<<20)
	var ops []protocol.Operation
	for i := range 6 { // more than one call may have
		op := create(fmt.Sprint("b", i))
		op.Param.Data = &large
		ops = append(ops, op)
	}
	for i := range 7 { // more than one answer may have
		ops = append(ops, protocol.PromiseGet{ID: fmt.Sprint("b", i%6)}, protocol.PromiseGet{ID: "missing"})
	}
	results := untilAll(t, follower, ops)
	if len(results) != len(ops) {
		t.Fatalf("%d results, want %d", len(results), len(ops))
	}
	for i, r := range results {
		if want := i < 6 || i%2 == 0; (r.Status == protocol.OK) != want {
			t.Errorf("operation %d: %d %s", i, r.Status, r.Error)
		}
	}
}

// TestPeersMessages: a worker gets its tasks whichever node it is connected to, also after
// the loss of the leader.
func TestPeersMessages(t *testing.T) { onPeers(t, testPeersMessages) }

func testPeersMessages(t *testing.T, nodes []*replicated.Node) {
	until(t, nodes[0], create("first"))
	var connections []protocol.Connection
	for i, n := range nodes {
		c, err := n.Connect(fmt.Sprint("group-", i), "worker")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		connections = append(connections, c)
	}
	receive := func(round string, i int, via *replicated.Node) {
		t.Helper()
		op := create(fmt.Sprintf("task-%s-%d", round, i))
		op.Tags = map[string]string{protocol.TagTarget: fmt.Sprint("poll://any@group-", i)}
		until(t, via, op)
		for m := range connections[i].Messages() {
			if m.Execute != nil && m.Execute.ID == op.ID {
				return
			}
		}
		t.Fatalf("%s: the connection of the worker at %s has ended", round, names[i])
	}
	for i := range nodes {
		receive("first", i, nodes[(i+1)%3])
	}
	for i, n := range nodes {
		if n.Status().Role != "leader" {
			continue
		}
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for j := 1; j < 3; j++ {
			receive("second", (i+j)%3, nodes[(i+3-j)%3])
		}
		return
	}
	t.Fatal("no node leads")
}

// TestInvalidCalls: a request that no node sends is refused.
func TestInvalidCalls(t *testing.T) { onPeers(t, testInvalidCalls) }

func testInvalidCalls(t *testing.T, nodes []*replicated.Node) {
	n := nodes[0]
	until(t, n, create("first"))
	for _, request := range []string{
		"", "\x00", "\x04", "\x01\x05abc", "\x01\x02{}",
		"\x02", "\x02\x01g", "\x02\x01g\x01p", "\x02\x01g\x01p\x01ix", "\x02\x01g\x01p\x00", // no id, an empty id
		"\x03", "\x03\x01i", "\x03\x01i\x01x", "\x03\x01i\x01", // an id that no connection has
	} {
		if err := replicated.AnswerCall(t.Context(), n, []byte(request), func([]byte) error { return nil }); err == nil {
			t.Errorf("%q must be refused", request)
		}
	}
}
