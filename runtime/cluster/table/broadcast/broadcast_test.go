package broadcast_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/tabletest"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/cluster/table/broadcast"
	"github.com/topogen/topogen/runtime/transport"
)

// cluster is a cluster in one process. A node is alive while its table is open.
type cluster struct {
	network *transport.Memory
	dir     string

	mu    sync.Mutex
	alive map[string]bool
	cut   map[string]bool
}

func newCluster(t *testing.T) *cluster {
	return &cluster{network: transport.NewMemory(transport.MemoryOptions{}), dir: memdir.Quick(t), alive: map[string]bool{}, cut: map[string]bool{}}
}

// names returns the nodes that a node sees alive.
func (c *cluster) names(self string) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.alive {
		if name == self || !c.cut[name] && !c.cut[self] {
			names = append(names, name)
		}
	}
	return names
}

// Cut cuts a node off from the others. All nodes see this at once.
func (c *cluster) Cut(name string, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut[name] = cut
	for other := range c.alive {
		if other != name {
			c.network.Cut(name, other, cut)
			c.network.Cut(other, name, cut)
		}
	}
}

func (c *cluster) set(name string, alive bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if alive {
		c.alive[name] = true
	} else {
		delete(c.alive, name)
	}
}

func (c *cluster) Open(t *testing.T, name string) table.Table {
	t.Helper()
	link, err := c.network.Join(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(c.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o, err := broadcast.Open(broadcast.Config{
		Topology: "test", Node: name, Dir: dir, Transport: link, Alive: func() []string { return c.names(name) },
		Tick: 5 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.set(name, true)
	return &node{o, link, c, name}
}

// node is a table that closes its transport.
type node struct {
	*broadcast.Table
	link    transport.Transport
	cluster *cluster
	name    string
}

func (n *node) Close() error {
	n.cluster.set(n.name, false)
	err := n.Table.Close()
	if e := n.link.Close(); err == nil {
		err = e
	}
	return err
}

func TestConformance(t *testing.T) {
	tabletest.Run(t, tabletest.Engine{
		New: func(t *testing.T) tabletest.Cluster { return newCluster(t) },
		Lacks: map[tabletest.Guarantee]string{
			tabletest.NoSplitBrain: "each side of a cut has a sequencer, and accepts changes; TestBothSidesOfACutWrite shows what remains",
		},
	})
}

// TestBothSidesOfACutWrite shows what the protocol does instead of preventing a split
// brain. After the cut, all nodes have the same table, and epochs have not decreased, but
// acknowledged changes of one side are lost.
func TestBothSidesOfACutWrite(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := newCluster(t)
	nodes := map[string]table.Table{}
	for _, name := range []string{"n1", "n2", "n3"} {
		nodes[name] = c.Open(t, name)
		defer nodes[name].Close()
	}
	list := []table.Placement{{Processor: table.Processor{Name: "counter", Instances: 3}}}
	if err := table.Bootstrap(ctx, nodes["n1"], table.Plan{Hash: "plan-1"}, list, []table.Node{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}}); err != nil {
		t.Fatal(err)
	}
	for name, n := range nodes { // a cut node would not get the first placement
		if err := n.Replica().WaitFor(ctx, func(r *table.Replica) bool { return r.Plan() != "" }); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	move := func(at string, instance int, to string, times int) (epoch uint64) {
		t.Helper()
		for range times {
			revision, err := nodes[at].Txn(ctx, nil, []table.Change{table.Assign{Processor: "counter", First: instance, Count: 1, Node: to}})
			if err != nil {
				t.Fatal(err)
			}
			epoch = revision.Index
		}
		return epoch
	}
	c.Cut("n1", true)
	lost := move("n2", 0, "n3", 1)
	want := []struct {
		node  string
		epoch uint64 // at least
	}{{"n2", move("n1", 0, "n2", 9)}, {"n3", move("n2", 1, "n3", 2)}, {"", max(move("n1", 2, "n1", 1), move("n3", 2, "n2", 1))}}
	if lost >= want[0].epoch {
		t.Fatalf("one side has moved counter/0 nine times, to epoch %d, and the other side once, to epoch %d", want[0].epoch, lost)
	}
	c.Cut("n1", false)
	for name, n := range nodes {
		if err := n.Replica().WaitFor(ctx, func(r *table.Replica) bool {
			counter, _, _ := r.Processor("counter")
			first, _ := r.Lookup(counter, 0)
			second, _ := r.Lookup(counter, 1)
			return first.Name == "n2" && second.Name == "n3"
		}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, w := range want {
			counter, _, _ := n.Replica().Processor("counter")
			if place, epoch := n.Replica().Lookup(counter, i); epoch < w.epoch || w.node != "" && place.Name != w.node {
				t.Errorf("%s finds counter/%d on %s with epoch %d, want %s and at least %d", name, i, place.Name, epoch, w.node, w.epoch)
			}
		}
	}
	place := func(name string) string {
		counter, _, _ := nodes[name].Replica().Processor("counter")
		n, _ := nodes[name].Replica().Lookup(counter, 2)
		return n.Name
	}
	if place("n1") != place("n2") || place("n1") != place("n3") {
		t.Errorf("the nodes disagree about counter/2: %s, %s, %s", place("n1"), place("n2"), place("n3"))
	}
}

// TestConfigIsChecked: Open refuses each setting that is missing or wrong, before it opens the log.
func TestConfigIsChecked(t *testing.T) {
	network := transport.NewMemory(transport.MemoryOptions{})
	link, err := network.Join("n1")
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	for want, change := range map[string]func(c *broadcast.Config){
		"Config.Topology, Transport and Alive must be set": func(c *broadcast.Config) { c.Topology = "" },
		"Transport and Alive must be set":                  func(c *broadcast.Config) { c.Transport = nil },
		"Alive must be set":                                func(c *broadcast.Config) { c.Alive = nil },
		"Tick must not be below 0":                         func(c *broadcast.Config) { c.Tick = -1 },
		"Config.Node":                                      func(c *broadcast.Config) { c.Node = "../n1" },
	} {
		dir := memdir.Quick(t)
		c := broadcast.Config{Topology: "test", Node: "n1", Dir: dir, Transport: link, Alive: func() []string { return nil }}
		change(&c)
		if _, err := broadcast.Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: the folder has %v", want, left)
		}
	}
}
