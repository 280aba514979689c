package replicated_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/replicated"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// group is three nodes in one process. The URL of a node ends with its name.
type group struct {
	t       *testing.T
	dir     string
	network *transport.Memory
	peers   map[string]string
	engine  engine.Config
	clocks  map[string]*shiftedClock // if engine has none
	setBack bool
	prefer  string                                  // the node that leads if it can
	wait    time.Duration                           // of an operation for a node that leads
	calls   bool                                    // the nodes have no servers, and call each other
	wrap    func(protocol.Backend) protocol.Backend // of the servers; may be nil

	mu    sync.Mutex
	lost  string // the node whose server does not answer, as if its host was lost
	nodes map[string]*replicated.Node
	links map[string]transport.Transport
}

var names = []string{"n1", "n2", "n3"}

func newGroup(t *testing.T) *group {
	return openGroup(t, engine.Config{}, 20*time.Second) // of real time: the computer of the test may be busy
}

func openGroup(t *testing.T, config engine.Config, wait time.Duration) *group {
	g := unopened(t, config, wait)
	for _, name := range names {
		g.start(name)
	}
	return g
}

// unopened returns a group whose nodes do not run yet.
func unopened(t *testing.T, config engine.Config, wait time.Duration) *group {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	g := &group{
		clocks: map[string]*shiftedClock{},
		engine: config, wait: wait,
		t: t, dir: t.TempDir(), network: transport.NewMemory(transport.MemoryOptions{}),
		peers: map[string]string{"n1": "h1:7101", "n2": "h2:7101", "n3": "h3:7101"},
		nodes: map[string]*replicated.Node{}, links: map[string]transport.Transport{},
	}
	for _, name := range names {
		g.clocks[name] = &shiftedClock{Clock: engine.NewClock()}
	}
	t.Cleanup(func() {
		for _, name := range names {
			g.stop(name)
		}
	})
	return g
}

var errDown = errors.New("the node is down")

func (g *group) start(name string) {
	g.t.Helper()
	link, err := g.network.Join(name)
	if err != nil {
		g.t.Fatal(err)
	}
	config := g.engine
	if config.Clock == nil {
		config.Clock = g.clocks[name]
	}
	url, dial := name, g.server
	if g.calls {
		url, dial = replicated.PeerScheme+name, g.peer
	}
	n, err := replicated.Open(replicated.Config{
		Raft: raft.Config{
			Topology: "shop", Group: "promises", Node: name, Peers: g.peers, Dir: g.dir, Transport: link,
			Logger: config.Logger, Prefer: g.prefer, ElectionTimeout: 300 * time.Millisecond, Heartbeat: 30 * time.Millisecond,
		},
		Engine: config, SetBack: g.setBack,
		URL:  url,
		Dial: dial,
		Wait: g.wait,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nodes[name], g.links[name] = n, link
}

// server is the backend for the server of a node.
func (g *group) server(url string) (protocol.Backend, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wrap != nil {
		return g.wrap(remote{g, url}), nil
	}
	return remote{g, url}, nil
}

func (g *group) stop(name string) {
	g.mu.Lock()
	n, link := g.nodes[name], g.links[name]
	delete(g.nodes, name)
	g.mu.Unlock()
	if n == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		g.t.Logf("closing %s: %v", name, err) // the engine of a node that lost the lead has failed
	}
	link.Close()
}

func (g *group) node(name string) *replicated.Node {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.nodes[name]
}

// remote is the server of a node.
type remote struct {
	g   *group
	url string
}

func (r remote) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	if r.g.isLost(r.url) {
		<-ctx.Done()
		return protocol.Result{}, ctx.Err()
	}
	if n := r.g.node(r.url); n != nil {
		return n.Local().Do(ctx, op)
	}
	return protocol.Result{}, errDown
}

func (r remote) Connect(group, pid string) (protocol.Connection, error) {
	if r.g.isLost(r.url) {
		return silent{}, nil
	}
	if n := r.g.node(r.url); n != nil {
		return n.Local().Connect(group, pid)
	}
	return nil, errDown
}

// peer is a node that is called in memory instead of over the connections of the group.
func (g *group) peer(url string) (protocol.Backend, error) {
	name := strings.TrimPrefix(url, replicated.PeerScheme)
	return replicated.NewPeer(func(ctx context.Context, _ string, request []byte, receive func([]byte) error) error {
		if n := g.node(name); n != nil {
			return replicated.AnswerCall(ctx, n, request, receive)
		}
		return errDown
	}), nil
}

// do repeats an operation that can be repeated until it has an answer.
func (g *group) do(name string, op protocol.Operation) protocol.Result {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		time.Sleep(time.Millisecond) // else no virtual time passes in a loop of operations
		r, err := g.node(name).Do(ctx, op)
		if ctx.Err() != nil {
			g.t.Fatalf("%s at %s has no answer: %d %s %v", op.Kind(), name, r.Status, r.Error, err)
		}
		if err == nil && r.Status != protocol.Unavailable {
			return r
		}
	}
}

// leader returns the name of the node that leads. It waits until one of the running nodes
// serves operations.
func (g *group) leader() string {
	g.t.Helper()
	for {
		for _, name := range names {
			if n := g.node(name); n != nil {
				g.do(name, protocol.PromiseGet{ID: "any"})
				if n.Status().Role == "leader" {
					return name
				}
			}
		}
	}
}

func create(id string) protocol.PromiseCreate {
	return protocol.PromiseCreate{ID: id, TimeoutAt: time.Now().Add(time.Hour).UnixMilli()}
}

func TestAnyNodeAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		for i, name := range names {
			id := fmt.Sprint("p", i)
			if r := g.do(name, create(id)); r.Status != protocol.OK || r.Promise.State != protocol.Pending {
				t.Fatalf("create at %s: %+v", name, r)
			}
			for _, other := range names {
				if r := g.do(other, protocol.PromiseGet{ID: id}); r.Status != protocol.OK {
					t.Errorf("%s was created at %s, and %s answers %d", id, name, other, r.Status)
				}
			}
		}
	})
}

// TestMessagesReachEachNode checks that a worker gets its tasks whichever node it is
// connected to.
// TestHandOver: when Close of the leader returns, another node leads.
func TestHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		first := g.leader()
		g.do(first, create("a"))
		g.stop(first)
		leads := map[string]bool{}
		for _, name := range names {
			if n := g.node(name); n != nil {
				leads[name] = n.Status().Role == "leader"
			}
		}
		if len(leads) != 2 || !leads[names[0]] && !leads[names[1]] && !leads[names[2]] {
			t.Errorf("%s has ended, and no other node leads: %v", first, leads)
		}
	})
}

// TestSuccessor: a leader hands over to the voter with the longest log, if the active voters are
// a majority without it.
func TestSuccessor(t *testing.T) {
	member := func(name string, active bool, match uint64, learner bool) raft.MemberStatus {
		m := raft.MemberStatus{Active: active, Match: match}
		m.Name, m.Learner = name, learner
		return m
	}
	self := member("n1", true, 9, false)
	for name, test := range map[string]struct {
		role   string
		others []raft.MemberStatus
		want   string
	}{
		"the longest log":       {"leader", []raft.MemberStatus{member("n2", true, 9, false), member("n3", true, 8, false)}, "n2"},
		"a follower":            {"follower", []raft.MemberStatus{member("n2", true, 9, false), member("n3", true, 9, false)}, ""},
		"one of three is down":  {"leader", []raft.MemberStatus{member("n2", true, 9, false), member("n3", false, 9, false)}, ""},
		"a learner has no vote": {"leader", []raft.MemberStatus{member("n2", true, 9, false), member("n3", true, 9, true)}, ""},
		"alone":                 {"leader", nil, ""},
	} {
		s := raft.Status{Node: "n1", Role: test.role, Members: append([]raft.MemberStatus{self}, test.others...)}
		if got := replicated.Successor(s); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestMessagesReachEachNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		for _, name := range names {
			c, err := g.node(name).Connect("group-"+name, "worker")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			op := create("task-" + name)
			op.Tags = map[string]string{protocol.TagTarget: "poll://any@group-" + name}
			g.do("n1", op)
			if m := <-c.Messages(); m.Execute == nil || m.Execute.ID != op.ID {
				t.Errorf("the worker at %s received %+v", name, m)
			}
		}
	})
}

// TestLossOfTheLeader stops the leader again and again while clients create promises. No
// answered promise may be missing.
func TestLossOfTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		ctx, stop := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		answered := make([][]string, 4)
		for client := range answered {
			clients.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(client)))
				for i := 0; ctx.Err() == nil; i++ {
					time.Sleep(time.Millisecond)
					id := fmt.Sprintf("c%d-%d", client, i)
					if n := g.node(names[random.IntN(len(names))]); n != nil {
						if r, err := n.Do(ctx, create(id)); err == nil && r.Status == protocol.OK {
							answered[client] = append(answered[client], id)
						}
					}
				}
			})
		}
		rounds := speed.Pick(t, 2, 5, 50)
		for round := range rounds {
			leader := g.leader()
			g.stop(leader)
			next := g.leader()
			if next == leader {
				t.Fatalf("%s was stopped and leads", leader)
			}
			for i := range 20 {
				g.do(next, create(fmt.Sprintf("m%d-%d", round, i)))
			}
			g.start(leader)
			g.do(leader, create(fmt.Sprint("s", round)))
		}
		stop()
		clients.Wait()
		for round := range rounds {
			answered = append(answered, []string{fmt.Sprintf("m%d-19", round), fmt.Sprint("s", round)})
		}
		total := 0
		for _, ids := range answered {
			for _, id := range ids {
				total++
				if r := g.do(names[total%len(names)], protocol.PromiseGet{ID: id}); r.Status != protocol.OK {
					t.Errorf("%s was answered and is missing: %d %s", id, r.Status, r.Error)
				}
			}
		}
		t.Logf("%d promises were answered", total)
	})
}

// TestReplacedEngine checks that an engine that was replaced cannot commit, although it
// does not know yet that another node leads.
func TestReplacedEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.do("n1", create("p"))
		old := g.leader()
		r, err := replicated.Begin(t.Context(), g.node(old), "test")
		if err != nil {
			t.Fatal(err)
		}
		// The epoch of r has replaced that of the node's engine, which must fail and begin again.
		g.do(old, create("q"))
		err = r.Update(func(tx store.Tx) error {
			tx.Put(core.Meta, []byte("key"), []byte("value"))
			return nil
		})
		if !errors.Is(err, store.ErrFailed) {
			t.Errorf("an engine of an earlier epoch committed: %v", err)
		}
		if r := g.do("n1", protocol.PromiseGet{ID: "q"}); r.Status != protocol.OK {
			t.Errorf("q is missing: %+v", r)
		}
	})
}
