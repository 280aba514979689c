package cluster

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
	tableraft "github.com/topogen/topogen/runtime/cluster/table/raft"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
	"github.com/topogen/topogen/runtime/transport"
)

// bubbled is the number of goroutines of the test, which runs in a bubble of synctest.
func bubbled() int {
	b := make([]byte, 64<<20)
	return strings.Count(string(b[:runtime.Stack(b, true)]), "synctest bubble")
}

// visitors is a program on the first members n1 and n2, and guests that join and leave. The sources
// send to each guest, which sends to the sinks.
type visitors struct {
	*joined
	tables table.Opener
}

func newVisitors(t *testing.T, tables table.Opener) *visitors {
	p := withProbe(math.MaxInt32)
	p.gated = true
	v := &visitors{&joined{t: t, program: p, network: transport.NewMemory(transport.MemoryOptions{})}, tables}
	for i := range 2 {
		v.open(fmt.Sprintf("n%d", i+1))
	}
	for _, top := range v.tops {
		awaitNode(t, top.node, "the first members", func(v *View) bool { return v.State == stateRunning })
	}
	return v
}

// make makes a process of a node.
func (v *visitors) make(name string) *top {
	wire := join(v.t, v.network, name)
	top, err := v.program.newTop(func(s piper.NodeSettings) (*Node, error) {
		s.Transport = wire
		c := v.program.config(2, memdir.Quick(v.t), nil)
		c.Table = v.tables
		for _, e := range v.program.edges {
			c.Edges = append(c.Edges, fmt.Sprint(e))
		}
		n, err := Open(c, s)
		if n != nil && !strings.HasPrefix(name, "n") {
			asNode(n.core).leaveAfter = 10 * time.Millisecond
		}
		return n, err
	}, piper.Node(name), piper.NodeAddress(name+":1"), piper.DrainTimeout(time.Minute))
	if err != nil {
		v.t.Fatal(err)
	}
	return top
}

// open starts a first member.
func (v *visitors) open(name string) {
	top := v.make(name)
	ctx, cancel := context.WithCancel(v.t.Context())
	ended := make(chan error, 1)
	v.tops, v.stops, v.ends = append(v.tops, top), append(v.stops, cancel), append(v.ends, ended)
	go func() { ended <- top.pool.Run(ctx) }()
}

// visit lets a guest join, handle messages, and leave.
func (v *visitors) visit(name string) {
	top := v.make(name)
	ctx, leave := context.WithCancel(v.t.Context())
	defer leave()
	ended := make(chan error, 1)
	go func() { ended <- top.pool.Run(ctx) }()
	for end := time.Now().Add(time.Minute); len(ended) == 0; <-time.After(50 * time.Millisecond) {
		if w := top.node.View(); w.State == stateRunning && w.Edges[1].Arrived > 0 {
			break
		}
		if time.Now().After(end) {
			v.t.Errorf("%s gets no messages", name)
			break
		}
		v.program.allowed.Add(10)
	}
	leave()
	if err := <-ended; err != nil {
		v.t.Errorf("%s: %v", name, err)
	}
	if err := top.node.links.Close(); err != nil { // its name may be used again
		v.t.Error(err)
	}
}

// kept says which parts of the first members have entries for other nodes, or "".
func (v *visitors) kept() (text string) {
	for _, top := range v.tops {
		for _, h := range top.node.gone.holders() {
			names := slices.DeleteFunc(h.names(), func(name string) bool { return name == "n1" || name == "n2" })
			if len(names) > 0 {
				text += fmt.Sprintf("%s of %s: %q\n", h.what, top.node.settings.node, names)
			}
		}
	}
	return text
}

// TestNothingIsKeptOfNodesThatLeft lets nodes with new names join and leave. Afterwards no part of
// the nodes that stay has an entry for one of them, and as many goroutines run as before. Then one
// of the names joins again.
func TestNothingIsKeptOfNodesThatLeft(t *testing.T) {
	for name, c := range map[string]struct {
		open  func() table.Opener
		joins int
	}{
		"memory": {func() table.Opener {
			tables := table.NewMemory()
			return func(table.Setup) (table.Table, error) { return tables.Open(), nil }
		}, speed.Pick(t, 15, 40, 1000)},
		"raft": {tableraft.Opener, speed.Pick(t, 15, 40, 1000)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const atOnce = 5
				v := newVisitors(t, c.open())
				first := v.tops[0].node
				visit := func(from, to int) {
					var all sync.WaitGroup
					for i := from; i < to; i++ {
						all.Go(func() { v.visit(fmt.Sprintf("guest%d", i)) })
					}
					all.Wait()
				}
				// The sources are idle from here on, and their nodes have the goroutines that they need.
				<-time.After(time.Second)
				synctest.Wait()
				before := bubbled()
				for i := 0; i < c.joins; i += atOnce {
					visit(i, min(i+atOnce, c.joins))
				}
				const within = 25 * time.Second // less than retry.timeout: nothing waits for a node that has left
				for end := time.Now().Add(within); v.kept() != ""; <-time.After(time.Second) {
					if time.Now().After(end) {
						t.Fatalf("after %v:\n%s", within, v.kept())
					}
				}
				for end := time.Now().Add(time.Minute); ; <-time.After(100 * time.Millisecond) {
					synctest.Wait()
					now := bubbled()
					if now <= before {
						break
					}
					if time.Now().After(end) {
						t.Fatalf("%d goroutines run, %d before", now, before)
					}
				}
				for _, top := range v.tops {
					core := asNode(top.node.core)
					top.node.running.Lock()
					slots, free := core.guests.slots, len(core.guests.free)
					for i := range core.groups.groups {
						if n := len(core.groups.groups[i].status); n > 2 {
							t.Errorf("%s has the reports of %d nodes about group %d", core.node, n, i)
						}
					}
					top.node.running.Unlock()
					t.Logf("%s has guests of %d nodes", core.node, slots)
					if free != slots-1 || slots > 20*atOnce {
						t.Errorf("%s has guests of %d nodes, and %d are free, want at most %d and all but one", core.node, slots, free, 20*atOnce)
					}
				}
				visit(0, 1)
				awaitNode(t, first, "the node to have left", func(w *View) bool { return stateOf(w, "guest0") == "left" })
				forgotten := time.Now().Add(time.Hour) // the profile says 10 minutes
				for len(first.detector.Members()) > 2 {
					if <-time.After(time.Minute); time.Now().After(forgotten) {
						t.Fatalf("failure detection has %d members", len(first.detector.Members()))
					}
				}
				for i := range v.tops {
					v.stops[i]()
				}
				for i, top := range v.tops {
					if err := v.end(i); err != nil {
						t.Errorf("n%d: %v", i+1, err)
					}
					for k, e := range top.pool.Snapshot().Edges {
						if e.Len != 0 || e.Waiting != 0 || e.Sent != e.Received+e.Dropped {
							t.Errorf("n%d, edge %v: %+v", i+1, v.program.edges[k], e)
						}
					}
				}
			})
		})
	}
}

// listedPlaces are places whose nodes change.
type listedPlaces struct{ sameNodes }

// TestPeersThatMustNotBeDropped lets a node leave, and drops its peer while something of it is in
// flight, or while its next process is there.
func TestPeersThatMustNotBeDropped(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(l *listedPlaces, p *nodePeer)
		end   func(l *listedPlaces, p *nodePeer)
	}{
		{"messages for it are kept", func(_ *listedPlaces, p *nodePeer) { p.kept = 1 }, func(_ *listedPlaces, p *nodePeer) { p.kept = 0 }},
		{
			"its messages are not handled",
			func(_ *listedPlaces, p *nodePeer) { p.pairs[border.Pair{}] = &inPair{put: 3} },
			func(_ *listedPlaces, p *nodePeer) {
				in := p.pairs[border.Pair{}]
				in.handled.Store(3)
				delete(p.pairs, border.Pair{}) // the next node has no use for a pair without a guest
			},
		},
		{
			"a pair was returned",
			func(_ *listedPlaces, p *nodePeer) { p.newPair(border.Pair{}, nil, &border.Outlet{}).away = true },
			func(_ *listedPlaces, p *nodePeer) { p.out[0].away = false },
		},
		{
			"it has joined again",
			func(l *listedPlaces, _ *nodePeer) { l.sameNodes = []string{"n1", "n2"} },
			func(l *listedPlaces, _ *nodePeer) { l.sameNodes = []string{"n1"} },
		},
		{
			"its next process was found, and the table does not have it yet",
			func(_ *listedPlaces, p *nodePeer) { p.heardAt = p.core.now },
			func(_ *listedPlaces, p *nodePeer) { p.heardAt -= goneAfter },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newPhaseNodes(t, "n1", "n2")
			n.start("n1").open = true
			n.start("n2").open = true
			n.run()
			core := n.cores["n1"]
			p := core.peers["n2"]
			p.heardAt -= goneAfter
			l := &listedPlaces{sameNodes{"n1"}}
			core.places = l
			c.begin(l, p)
			core.step(n.now, &happened{gone: []string{"n2"}})
			if core.peers["n2"] != p {
				t.Fatal("the peer was dropped")
			}
			c.end(l, p)
			core.step(n.now, &happened{gone: []string{"n2"}})
			if core.peers["n2"] != nil || slices.Contains(core.ordered, &p.peer) {
				t.Fatal("the peer remains")
			}
			core.step(n.now, &happened{frames: []frame{{from: "n2", data: []byte{1}}}, alive: []alive{{node: "n2", left: true}}})
			if core.peers["n2"] != nil {
				t.Fatal("late news bring the peer back")
			}
			l.sameNodes = []string{"n1", "n2"}
			core.step(n.now, &happened{members: true})
			if core.peers["n2"] == nil || core.guests.slots != 1 {
				t.Errorf("the next process has the peer %v, and there are guests of %d nodes", core.peers["n2"], core.guests.slots)
			}
		})
	}
}

// TestLinksStayWhileTheyAreNeeded: a link is removed when it was not needed for some time, unless its
// node has joined in the meantime.
func TestLinksStayWhileTheyAreNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := join(t, transport.NewMemory(transport.MemoryOptions{}), "n1")
		g := newGone()
		l := newLinks(wire, &g)
		isGone := true
		drop := func() bool {
			l.drop("n2", func(string) bool { return isGone })
			return len(l.names()) == 0
		}
		l.SetPeer("n2", "n2:1")
		if l.RemovePeer("n2"); drop() {
			t.Error("a part has just needed the link")
		}
		<-time.After(goneAfter)
		if isGone = false; drop() {
			t.Error("the node has joined again")
		}
		if isGone = true; !drop() {
			t.Error("the link remains")
		}
		if len(g.wake) == 0 {
			t.Error("dropGone does not look at a new link")
		}
	})
}

// TestGuestsAreUsedAgain: the guests of a node that has left are those of the next one, whatever
// its name is.
func TestGuestsAreUsedAgain(t *testing.T) {
	config := &Config{Topology: "t", Retry: Retry{Timeout: time.Minute, Min: time.Second, Max: time.Second}}
	c := newCore(config, "n1", 1, rand.New(rand.NewPCG(1, 1)), nil)
	first := c.guests.take(&nodePeer{peer: peer{name: "n2"}})
	c.guests.free = append(c.guests.free, first)
	if next := c.guests.take(&nodePeer{peer: peer{name: "n3"}}); next != first || len(c.guests.free) != 0 {
		t.Errorf("got %+v, %d free", next, len(c.guests.free))
	}
	if next := c.guests.take(&nodePeer{peer: peer{name: "n4"}}); next == first || next.name == first.name {
		t.Errorf("two nodes have the same guests, %q", next.name)
	}
}

// TestNamesAtOneAddress lets nodes with new names join at one address, one after the other, over
// gRPC and with the address table in a raft group. A first member has no link to those that have
// left.
func TestNamesAtOneAddress(t *testing.T) {
	speed.Landing(t)
	addresses := loopback.Addresses(t, 2)
	p := withProbe(math.MaxInt32)
	p.gated = true
	open := func(name, address string) *top {
		dir := t.TempDir()
		top, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
			c := p.config(1, dir, nil)
			for _, e := range p.edges {
				c.Edges = append(c.Edges, fmt.Sprint(e))
			}
			c.Nodes, c.Table = map[string]string{"n1": addresses[0]}, func(s table.Setup) (table.Table, error) {
				return tableraft.Open(tableraft.Config{
					Topology: s.Topology, Node: s.Node, Address: s.Address, First: s.First, Plan: s.Plan,
					Dir: s.Dir, Transport: s.Transport, Gone: s.Gone, Logger: s.Logger,
					Heartbeat: 20 * time.Millisecond, ElectionTimeout: 200 * time.Millisecond,
				})
			}
			n, err := Open(c, s)
			if n != nil {
				asNode(n.core).leaveAfter = 10 * time.Millisecond
				n.gone.after, n.gone.every = 500*time.Millisecond, 20*time.Millisecond
			}
			return n, err
		}, piper.Node(name), piper.NodeAddress(address), piper.DrainTimeout(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return top
	}
	tops := []*top{open("n1", addresses[0])}
	stop, wait := runEach(t, tops)
	first := tops[0].node
	awaitNode(t, first, "the first member", func(v *View) bool { return v.State == stateRunning })
	for i := range 3 {
		guests := []*top{open(fmt.Sprintf("guest%d", i), addresses[1])}
		leave, left := runEach(t, guests)
		awaitNode(t, guests[0].node, "messages", func(v *View) bool {
			p.allowed.Add(1)
			return v.State == stateRunning && v.Edges[1].Arrived > 0
		})
		leave[0]()
		left(0)
	}
	awaitNode(t, first, "the end of the links", func(*View) bool { return len(first.transport.Stats().Peers) == 0 })
	stop[0]()
	wait(0)
}
