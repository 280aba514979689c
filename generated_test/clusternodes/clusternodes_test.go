package clusternodes

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// place puts boxes and desks on other nodes than sources with the same index.
func place(processor, instance int) int {
	switch ProcessorIndex(processor) {
	case ProcessorSource:
		return instance
	case ProcessorDesk, ProcessorBox:
		return instance + 1
	}
	return clustertest.Everywhere
}

// name is the name of a node.
func name(node int) string { return fmt.Sprint("n", node+1) }

// processors gives the instances of a node its name.
func processors(node string) Processors {
	return Processors{
		Probe: func(in topo.Instance) (*Probe, error) {
			return &Probe{Log: Log{Node: node}, ID: fmt.Sprint("probe", in.Index, node)}, nil
		},
		Careful: func(in topo.Instance) (*Careful, error) {
			return &Careful{Log: Log{Node: node}, ID: fmt.Sprint("careful", in.Index, node)}, nil
		},
		Watcher: func(topo.Instance) (*Watcher, error) { return &Watcher{Log: Log{Node: node}}, nil },
		Radio:   func(topo.Instance) (*Radio, error) { return &Radio{Log{Node: node}}, nil },
	}
}

// TestNodes checks that each message arrives at the node that it names, once and in order,
// and that each reply arrives at the instance that has asked.
func TestNodes(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d nodes, %d workers", n, workers), func(t *testing.T) {
				var c counts
				nodes := clustertest.Run(t, n, place, func(node int, opts ...pool.Option) (*Topology, error) {
					return New(processors(name(node)), append(opts, pool.Workers(workers))...)
				}, func(nodes []*Topology) { c.sendAll(t, nodes) })
				c.check(t, nodes)
			})
		}
	}
}

// TestCluster does the same on nodes of package cluster.
func TestCluster(t *testing.T) {
	var c counts
	nodes := clustertest.RunCluster(t, 3, func(node int, opts ...pool.Option) (*Topology, error) {
		return New(processors(name(node)), opts...)
	}, func(nodes []*Topology) { c.sendAll(t, nodes) })
	c.check(t, nodes)
}

// TestOneProcess runs the topology without the name of a node: the names in messages are
// ignored.
func TestOneProcess(t *testing.T) {
	top, err := New(processors(""))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- top.Run(t.Context()) }()
	for i, node := range []string{"n1", "nowhere", ""} {
		if got, err := top.Api().AskLook(t.Context(), Look{&Target{node}, i}); err != nil || got.N != i {
			t.Errorf("%+v, %v", got, err)
		}
	}
	top.Api().Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	finds := 0
	for i := range 2 {
		p, c, r := top.Probe(i), top.Careful(i), top.Radio(i)
		finds += sum(p.Count, "Find of ")
		checkLog(t, "probe", &p.Log)
		checkLog(t, "careful", &c.Log)
		checkLog(t, "radio", &r.Log)
	}
	if finds != 3*Messages {
		t.Errorf("the probes got %d of Find, want %d", finds, 3*Messages)
	}
	for _, e := range top.Snapshot().Edges {
		if e.Dropped > 0 {
			t.Errorf("an edge has dropped messages: %+v", e)
		}
	}
}

// outside is how many messages come from outside on each node, along each edge and to each
// node.
const outside = 20

// counts are the messages from outside that were accepted.
type counts struct{ must, may, full atomic.Int64 }

func (c *counts) sendAll(t *testing.T, nodes []*Topology) {
	for _, top := range nodes {
		for i := range outside {
			for node := range nodes {
				c.send(t, top.Api(), name(node), i)
			}
		}
		for _, node := range []*Target{nil, {}, {"nowhere"}} {
			if _, err := top.Api().AskLook(t.Context(), Look{node, 0}); !errors.Is(err, topo.ErrNoInstance) {
				t.Errorf("a node that does not exist: %v", err)
			}
		}
		top.Api().Close()
	}
}

func (c *counts) send(t *testing.T, api *ApiSender, node string, i int) {
	ctx := t.Context()
	want := Seen{node, i}
	if got, err := api.AskLook(ctx, Look{&Target{node}, i}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if err := api.SendHint(ctx, Hint{node, i}); err != nil {
		t.Error(err)
	}
	switch err := api.SendMust(ctx, Must{node, i}); {
	case err == nil:
		c.must.Add(1)
	case !errors.Is(err, topo.ErrFull):
		t.Error(err)
	}
	switch got, err := api.AskMay(ctx, May{node, i}); {
	case err == nil && got == want:
		c.may.Add(1)
	case errors.Is(err, topo.ErrFull):
		c.full.Add(1)
	default:
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// sum adds the counts whose names have a prefix.
func sum(counts map[string]int, prefix string) (n int) {
	for name, count := range counts {
		if len(name) >= len(prefix) && name[:len(prefix)] == prefix {
			n += count
		}
	}
	return n
}

func checkLog(t *testing.T, name string, l *Log) {
	t.Helper()
	if len(l.Faults) > 0 {
		t.Errorf("%s on node %s: %d faults, first %s", name, l.Node, len(l.Faults), l.Faults[0])
	}
}

func (c *counts) check(t *testing.T, nodes []*Topology) {
	t.Helper()
	n := len(nodes)
	sent := map[string]map[string]int{} // by node and sender
	for node := range nodes {
		sent[name(node)] = map[string]int{}
	}
	for i := range 3 {
		for _, top := range nodes {
			s := top.Source(i)
			if s == nil {
				continue
			}
			all := s.Refused
			for node, k := range s.Sent {
				sent[string(node)][fmt.Sprint("Find of source", i)] = k
				all += k
			}
			if s.Refused == 0 || all != Messages {
				t.Errorf("source %d: %d messages were refused, and %d in all", i, s.Refused, all)
			}
		}
	}
	parcels, musts := 2*n*Questions, 0
	for i, top := range nodes {
		for j := range 2 {
			c.checkInstance(t, top, j, sent[name(i)])
		}
		w := top.Watcher(0)
		checkLog(t, "watcher", &w.Log)
		musts += w.Musts
		for by, k := range sent[name(i)] {
			if w.Count[by] != k {
				t.Errorf("watcher on node %d: %v, want %d of %s", i+1, w.Count, k, by)
			}
		}
		if least := 2 * Questions; w.Hints < least || w.Hints > least+n*outside {
			t.Errorf("watcher on node %d: %d hints", i+1, w.Hints)
		}
	}
	if finds, news := c.radios(t, nodes); finds != parcels || news != parcels*2*n {
		t.Errorf("the radios got %d of Find and %d of News, want %d and %d", finds, news, parcels, parcels*2*n)
	}
	if musts != int(c.must.Load()) || c.may.Load()+c.full.Load() != int64(n*n*outside) {
		t.Errorf("%d of Must were handled, want %d; %d of May were answered and %d refused", musts, c.must.Load(), c.may.Load(), c.full.Load())
	}
	if f := clustertest.Figures(nodes, int(EdgeBoxRadioFind)); f.Dropped != uint64(2*n*(Questions/10)) {
		t.Errorf("messages of boxes to a node that does not exist: %+v", f)
	}
	if f := clustertest.Figures(nodes, int(EdgeDeskWatcherHint)); f.Dropped != uint64(2*n*Questions) {
		t.Errorf("messages of desks to a node that does not exist: %+v", f)
	}
}

// checkInstance checks instance j of the processors that have two on each node.
func (c *counts) checkInstance(t *testing.T, top *Topology, j int, sent map[string]int) {
	t.Helper()
	p, q := top.Probe(j), top.Careful(j)
	checkLog(t, "probe", &p.Log)
	checkLog(t, "careful", &q.Log)
	for by, k := range sent {
		if by[len(by)-1] != byte('0'+j) && by != fmt.Sprint("Find of source", j+2) { // source 2 has the same instance as source 0
			k = 0
		}
		if p.Count[by] != k || q.Count[by] != k {
			t.Errorf("instance %d on node %s: the probe got %v and careful %v, want %d of %s", j, p.Node, p.Count, q.Count, k, by)
		}
	}
	if p.news != 3*Messages || p.Count["Answer of Answer"] != Questions || p.Count["Receipt of desk of Receipt of desk"] != Questions ||
		p.Count["Receipt of box of Receipt of box"] != Questions || q.Count["Answer of Answer"] != Questions {
		t.Errorf("instance %d on node %s: the probe got %v and careful %v", j, p.Node, p.Count, q.Count)
	}
}

func (c *counts) radios(t *testing.T, nodes []*Topology) (finds, news int) {
	t.Helper()
	for _, top := range nodes {
		for j := range 2 {
			r := top.Radio(j)
			checkLog(t, "radio", &r.Log)
			finds += sum(r.Count, "Find of ")
			news += sum(r.Count, "News of ")
		}
	}
	return finds, news
}
