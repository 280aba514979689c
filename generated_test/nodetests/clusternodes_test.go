package nodetests_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/topogen/topogen/generated_test/clusternodes"
	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// namedPlace puts boxes and desks on other nodes than sources with the same index.
func namedPlace(processor, instance int) int {
	switch clusternodes.ProcessorIndex(processor) {
	case clusternodes.ProcessorSource:
		return instance
	case clusternodes.ProcessorDesk, clusternodes.ProcessorBox, clusternodes.ProcessorTower:
		return instance + 1
	}
	return clustertest.Everywhere
}

// namedProcessors gives the instances of a node its name.
func namedProcessors(node string) clusternodes.Processors {
	return clusternodes.Processors{
		Probe: func(in topo.Instance) (*clusternodes.Probe, error) {
			return &clusternodes.Probe{Log: clusternodes.Log{Node: node}, ID: fmt.Sprint("probe", in.Index, node)}, nil
		},
		Careful: func(in topo.Instance) (*clusternodes.Careful, error) {
			return &clusternodes.Careful{Log: clusternodes.Log{Node: node}, ID: fmt.Sprint("careful", in.Index, node), Token: in.FencingToken()}, nil
		},
		Watcher: func(topo.Instance) (*clusternodes.Watcher, error) {
			return &clusternodes.Watcher{Log: clusternodes.Log{Node: node}}, nil
		},
		Radio: func(topo.Instance) (*clusternodes.Radio, error) {
			return &clusternodes.Radio{Log: clusternodes.Log{Node: node}}, nil
		},
	}
}

// TestClusterNodesNodes checks that each message arrives at the node that it names, once and in order,
// and that each reply arrives at the instance that has asked.
func TestClusterNodesNodes(t *testing.T) {
	t.Parallel()
	clustertest.Each(t, func(t *testing.T, n int, workers pool.Option) {
		var c namedCounts
		nodes := clustertest.Run(t, n, namedPlace, func(node int, opts ...pool.Option) (*clusternodes.Topology, error) {
			return clusternodes.New(namedProcessors(nodeName(node)), append(opts, workers)...)
		}, func(nodes []*clusternodes.Topology) { c.sendAll(t, nodes) })
		c.check(t, nodes)
	})
}

// TestClusterNodesCluster does the same on nodes of package cluster.
func TestClusterNodesCluster(t *testing.T) {
	speed.Landing(t) // TestClusterNodesNodes does it without a network; processes have no virtual time
	t.Parallel()
	var c namedCounts
	nodes := clustertest.RunCluster(t, 3, func(node int, opts ...pool.Option) (*clusternodes.Topology, error) {
		return clusternodes.New(namedProcessors(nodeName(node)), opts...)
	}, func(nodes []*clusternodes.Topology) { c.sendAll(t, nodes) })
	c.check(t, nodes)
}

// TestClusterNodesOneProcess runs the topology without the name of a node: the names in messages are
// ignored.
func TestClusterNodesOneProcess(t *testing.T) {
	top, err := clusternodes.New(namedProcessors(""))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- top.Run(t.Context()) }()
	for i, node := range []string{"n1", "nowhere", ""} {
		if got, err := top.Api().AskLook(t.Context(), clusternodes.Look{At: &clusternodes.Target{Node: node}, N: i}); err != nil || got.N != i {
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
		if p.Token != 0 || c.Token != 0 {
			t.Errorf("without a cluster, the tokens are %d and %d", p.Token, c.Token)
		}
		checkLog(t, "probe", &p.Log)
		checkLog(t, "careful", &c.Log)
		checkLog(t, "radio", &r.Log)
	}
	if finds != 3*clusternodes.Messages {
		t.Errorf("the probes got %d of Find, want %d", finds, 3*clusternodes.Messages)
	}
	if want := []clusternodes.Signal{{Node: "nowhere"}, {Node: "n1"}}; !slices.Equal(top.Radio(0).Signals, want) {
		t.Errorf("signals of the tower: %+v, want %+v", top.Radio(0).Signals, want)
	}
	for _, e := range top.Snapshot().Edges {
		if e.Dropped > 0 {
			t.Errorf("an edge has dropped messages: %+v", e)
		}
	}
}

// namedOutside is how many messages come from outside on each node, along each edge and to each
// node.
const namedOutside = 20

// namedCounts are the messages from outside that were accepted.
type namedCounts struct{ must, may, full atomic.Int64 }

func (c *namedCounts) sendAll(t *testing.T, nodes []*clusternodes.Topology) {
	for _, top := range nodes {
		for i := range namedOutside {
			for node := range nodes {
				c.send(t, top.Api(), nodeName(node), i)
			}
		}
		for _, node := range []*clusternodes.Target{nil, {}, {Node: "nowhere"}} {
			if _, err := top.Api().AskLook(t.Context(), clusternodes.Look{At: node, N: 0}); !errors.Is(err, topo.ErrNoInstance) {
				t.Errorf("a node that does not exist: %v", err)
			}
		}
		top.Api().Close()
	}
}

func (c *namedCounts) send(t *testing.T, api *clusternodes.ApiSender, node string, i int) {
	ctx := t.Context()
	want := clusternodes.Seen{Node: node, N: i}
	if got, err := api.AskLook(ctx, clusternodes.Look{At: &clusternodes.Target{Node: node}, N: i}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if err := api.SendHint(ctx, clusternodes.Hint{Node: node, N: i}); err != nil {
		t.Error(err)
	}
	switch err := api.SendMust(ctx, clusternodes.Must{Node: node, N: i}); {
	case err == nil:
		c.must.Add(1)
	case !errors.Is(err, topo.ErrFull):
		t.Error(err)
	}
	switch got, err := api.AskMay(ctx, clusternodes.May{Node: node, N: i}); {
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

func checkLog(t *testing.T, name string, l *clusternodes.Log) {
	t.Helper()
	if len(l.Faults) > 0 {
		t.Errorf("%s on node %s: %d faults, first %s", name, l.Node, len(l.Faults), l.Faults[0])
	}
}

func (c *namedCounts) check(t *testing.T, nodes []*clusternodes.Topology) {
	t.Helper()
	n := len(nodes)
	sent := map[string]map[string]int{} // by node and sender
	for node := range nodes {
		sent[nodeName(node)] = map[string]int{}
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
			if s.Refused == 0 || all != clusternodes.Messages {
				t.Errorf("source %d: %d messages were refused, and %d in all", i, s.Refused, all)
			}
		}
	}
	parcels, musts := 2*n*clusternodes.Questions, 0
	for i, top := range nodes {
		for j := range 2 {
			c.checkInstance(t, top, j, sent[nodeName(i)])
		}
		w := top.Watcher(0)
		checkLog(t, "watcher", &w.Log)
		musts += w.Musts
		for by, k := range sent[nodeName(i)] {
			if w.Count[by] != k {
				t.Errorf("watcher on node %d: %v, want %d of %s", i+1, w.Count, k, by)
			}
		}
		if least := 2 * clusternodes.Questions; w.Hints < least || w.Hints > least+n*namedOutside {
			t.Errorf("watcher on node %d: %d hints", i+1, w.Hints)
		}
	}
	if finds, news := c.radios(t, nodes); finds != parcels || news != parcels*2*n {
		t.Errorf("the radios got %d of Find and %d of News, want %d and %d", finds, news, parcels, parcels*2*n)
	}
	if musts != int(c.must.Load()) || c.may.Load()+c.full.Load() != int64(n*n*namedOutside) {
		t.Errorf("%d of Must were handled, want %d; %d of May were answered and %d refused", musts, c.must.Load(), c.may.Load(), c.full.Load())
	}
	if f := clustertest.Figures(nodes, int(clusternodes.EdgeBoxRadioFind)); f.Dropped != uint64(2*n*(clusternodes.Questions/10)) {
		t.Errorf("messages of boxes to a node that does not exist: %+v", f)
	}
	want := []clusternodes.Signal{{Node: "n1", Err: topo.ErrNoInstance.Error()}}
	if got := nodes[0].Radio(0).Signals; !slices.Equal(got, want) {
		t.Errorf("signals of the tower: %+v, want %+v", got, want)
	}
	if f := clustertest.Figures(nodes, int(clusternodes.EdgeTowerRadioSignal)); f.Dropped != 1 || f.Received != 1 {
		t.Errorf("signals of the tower: %+v", f)
	}
	if f := clustertest.Figures(nodes, int(clusternodes.EdgeDeskWatcherHint)); f.Dropped != uint64(2*n*clusternodes.Questions) {
		t.Errorf("messages of desks to a node that does not exist: %+v", f)
	}
}

// checkInstance checks instance j of the processors that have two on each node.
func (c *namedCounts) checkInstance(t *testing.T, top *clusternodes.Topology, j int, sent map[string]int) {
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
	if p.Token == 0 || q.Token == 0 {
		t.Errorf("instance %d on node %s: a box had the token %d, and careful %d", j, p.Node, p.Token, q.Token)
	}
	if p.News != 3*clusternodes.Messages || p.Count["Answer of Answer"] != clusternodes.Questions || p.Count["Receipt of desk of Receipt of desk"] != clusternodes.Questions ||
		p.Count["Receipt of box of Receipt of box"] != clusternodes.Questions || q.Count["Answer of Answer"] != clusternodes.Questions {
		t.Errorf("instance %d on node %s: the probe got %v and careful %v", j, p.Node, p.Count, q.Count)
	}
}

func (c *namedCounts) radios(t *testing.T, nodes []*clusternodes.Topology) (finds, news int) {
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
