package nodetests_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/topogen/topogen/generated_test/clusteredges"
	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/pool"
)

// edgesPlace puts instance i of most processors on node i, and burst and tight on different nodes.
func edgesPlace(processor, instance int) int {
	switch clusteredges.ProcessorIndex(processor) {
	case clusteredges.ProcessorPinned, clusteredges.ProcessorTight:
		return 1
	case clusteredges.ProcessorBurst:
		return 0
	case clusteredges.ProcessorProbe, clusteredges.ProcessorWatcher, clusteredges.ProcessorApi:
		return clustertest.Everywhere
	}
	return instance
}

// edgesOutside is how many messages come from outside on each node, along each edge.
const edgesOutside = 50

// TestClusterEdgesNodes runs the topology on several nodes. One worker for each node makes sure that all
// messages of burst are queued together.
func TestClusterEdgesNodes(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) { edgesRun(t, n, pool.Workers(1)) })
	}
}

// TestClusterEdgesWorkers runs the topology with several workers on each node.
func TestClusterEdgesWorkers(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) { edgesRun(t, n, pool.Workers(3)) })
	}
}

func edgesRun(t *testing.T, n int, workers pool.Option) {
	make := func(_ int, opts ...pool.Option) (*clusteredges.Topology, error) {
		return clusteredges.New(clusteredges.Processors{}, append(opts, workers)...)
	}
	nodes := clustertest.Run(t, n, edgesPlace, make, func(nodes []*clusteredges.Topology) {
		for i, top := range nodes {
			edgesSend(t, fmt.Sprint("api", i), top.Api())
		}
	})
	edgesCheck(t, nodes)
	for i, top := range nodes {
		for j := range 2 {
			if n > 1 && (top.Gates(j) != nil) != (j%n == i) {
				t.Errorf("node %d runs instance %d of gates: %v", i, j, top.Gates(j) != nil)
			}
		}
	}
}

// TestClusterEdgesCluster runs the topology on nodes of package cluster.
func TestClusterEdgesCluster(t *testing.T) {
	t.Parallel()
	clustertest.Bubble(t, func(t *testing.T) {
		make := func(_ int, opts ...pool.Option) (*clusteredges.Topology, error) {
			return clusteredges.New(clusteredges.Processors{}, append(opts, pool.Workers(1))...)
		}
		nodes := clustertest.RunCluster(t, 3, make, func(nodes []*clusteredges.Topology) {
			for i, top := range nodes {
				edgesSend(t, fmt.Sprint("api", i), top.Api())
			}
		})
		edgesCheck(t, nodes)
		for i, top := range nodes {
			if v := top.Cluster(); v == nil || len(v.Nodes) != 3 || v.Node != fmt.Sprint("n", i+1) {
				t.Errorf("view of node %d: %+v", i+1, v)
			}
		}
	})
}

// edgesCheck checks what the instances have received.
func edgesCheck(t *testing.T, nodes []*clusteredges.Topology) {
	t.Helper()
	if t.Failed() {
		return
	}
	checkWorkers(t, nodes)
	checkPartners(t, nodes)
	checkBurst(t, nodes)
	checkEdges(t, nodes)
}

func edgesSend(t *testing.T, by string, api *clusteredges.ApiSender) {
	for i := range edgesOutside {
		stamp := clusteredges.Stamp{By: by, N: i}
		for _, err := range []error{
			api.SendKeyed(t.Context(), clusteredges.Keyed{Stamp: stamp, Key: clusteredges.Keys[i%len(clusteredges.Keys)]}),
			api.SendAll(t.Context(), clusteredges.All{Stamp: stamp, Text: []byte("out")}),
			api.SendSingle(t.Context(), clusteredges.Single{By: by, N: i}),
			api.SendOldest(t.Context(), clusteredges.Oldest{N: 100 + i}),
			api.SendEverywhere(t.Context(), clusteredges.Everywhere{By: by, N: i, Text: []byte("out")}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	}
	api.Close()
}

// instance returns instance i of a processor, from the node that runs it.
func instance[P any](nodes []*clusteredges.Topology, of func(top *clusteredges.Topology) *P) *P {
	for _, top := range nodes {
		if p := of(top); p != nil {
			return p
		}
	}
	panic("no node runs the instance")
}

func checkWorkers(t *testing.T, nodes []*clusteredges.Topology) {
	t.Helper()
	count := make(map[string]int)
	for i := range 5 {
		w := instance(nodes, func(top *clusteredges.Topology) *clusteredges.Worker { return top.Worker(i) })
		if len(w.Unordered) > 0 {
			t.Errorf("worker %d: out of order: %v", i, w.Unordered)
		}
		for message, n := range w.Count {
			count[message] += n
		}
		if want := 3*clusteredges.Messages + len(nodes)*edgesOutside; w.Count["All"] != want {
			t.Errorf("worker %d: %d of All, want %d", i, w.Count["All"], want)
		}
		if w.Count["Numbered"] != 3*clusteredges.Messages/5 {
			t.Errorf("worker %d: %d of Numbered", i, w.Count["Numbered"])
		}
	}
	if count["Keyed"] != 3*clusteredges.Messages+len(nodes)*edgesOutside || count["Some"] != 3*3*clusteredges.Messages {
		t.Errorf("workers: %v", count)
	}
}

func checkPartners(t *testing.T, nodes []*clusteredges.Topology) {
	t.Helper()
	far := 0
	for i := range 3 {
		p := instance(nodes, func(top *clusteredges.Topology) *clusteredges.Partner { return top.Partner(i) })
		far += p.Count["Far"]
		if len(p.Unordered) > 0 || p.Count["Near"] != clusteredges.Messages {
			t.Errorf("partner %d: %+v", i, p.Log)
		}
	}
	pinned := instance(nodes, func(top *clusteredges.Topology) *clusteredges.Pinned { return top.Pinned(0) })
	if far != 3*clusteredges.Messages || pinned.Count["partner"] != far || pinned.Count["Single"] != 3*clusteredges.Messages || len(pinned.Unordered) > 0 {
		t.Errorf("%d of Far; pinned: %+v", far, pinned.Log)
	}
	near, gates := 0, 0
	for i, top := range nodes {
		if p, q := top.Probe(0), top.Probe(1); p.Count["Everywhere"] != 3*clusteredges.Messages || q.Count["Everywhere"] != 3*clusteredges.Messages || len(p.Unordered)+len(q.Unordered) > 0 {
			t.Errorf("node %d: the probes got %+v and %+v", i, p.Log, q.Log)
		}
		if w := top.Watcher(0); w.Count["Everywhere"] != 3*clusteredges.Messages+len(nodes)*edgesOutside || len(w.Unordered) > 0 {
			t.Errorf("node %d: the watcher got %+v", i, w.Log)
		}
		near += len(top.Probe(0).Near) + len(top.Probe(1).Near)
	}
	if near != 3*clusteredges.Messages {
		t.Errorf("probes: %d of Near", near)
	}
	for i := range 2 {
		g := instance(nodes, func(top *clusteredges.Topology) *clusteredges.Gates { return top.Gates(i) })
		gates += g.Count["Keyed"]
		if len(g.Unordered) > 0 || g.Must != clusteredges.Rounds || g.Single != i*len(nodes)*edgesOutside {
			t.Errorf("gates %d: %+v", i, g)
		}
	}
	if gates != 3*clusteredges.Messages {
		t.Errorf("gates: %d of Keyed", gates)
	}
}

func checkBurst(t *testing.T, nodes []*clusteredges.Topology) {
	t.Helper()
	burst := instance(nodes, func(top *clusteredges.Topology) *clusteredges.Burst { return top.Burst(0) })
	tight := instance(nodes, func(top *clusteredges.Topology) *clusteredges.Tight { return top.Tight(0) })
	pinned := instance(nodes, func(top *clusteredges.Topology) *clusteredges.Pinned { return top.Pinned(0) })
	oldest, newest, all := []int{6, 7, 8, 9}, []int{0, 1, 2, 3}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	if *burst != (clusteredges.Burst{Failed: 6, Sent: 4}) {
		t.Errorf("burst: %+v", burst)
	}
	if !slices.Equal(tight.Oldest, oldest) || !slices.Equal(tight.Newest, newest) || !slices.Equal(tight.Must, newest) || !slices.Equal(tight.Wait, all) {
		t.Errorf("tight: %+v", tight)
	}
	if own := slices.DeleteFunc(slices.Clone(pinned.Oldest), func(n int) bool { return n >= 100 }); !slices.Equal(own, oldest) {
		t.Errorf("pinned: %v of burst", own)
	}
	if !slices.Contains(pinned.Oldest, 100+edgesOutside-1) {
		t.Error("the last message from outside was dropped")
	}
	if got := nodes[0].Probe(0).Local; !slices.Equal(got, all) {
		t.Errorf("probe: %v", got)
	}
}

// checkEdges compares what the senders and the receivers have counted.
func checkEdges(t *testing.T, nodes []*clusteredges.Topology) {
	t.Helper()
	for e, sent := range map[clusteredges.EdgeIndex]uint64{
		clusteredges.EdgeSourceWorkerKeyed: 3 * clusteredges.Messages, clusteredges.EdgeSourceWorkerAll: 5 * 3 * clusteredges.Messages, clusteredges.EdgeSourcePartnerFar: 3 * clusteredges.Messages, clusteredges.EdgeSourcePinnedSingle: 3 * clusteredges.Messages,
		clusteredges.EdgeBurstTightOldest: clusteredges.Rounds, clusteredges.EdgeBurstTightWait: clusteredges.Rounds, clusteredges.EdgeTightGatesMust: 2 * clusteredges.Rounds, clusteredges.EdgeApiPinnedOldest: uint64(len(nodes) * edgesOutside),
	} {
		f := clustertest.Figures(nodes, int(e))
		if f.Sent != sent {
			t.Errorf("%v: %d sent, want %d", e, f.Sent, sent)
		}
		if len(nodes) == 1 && f.Arrived > 0 {
			t.Errorf("%v: %d messages came from another node", e, f.Arrived)
		}
	}
	if f := clustertest.Figures(nodes, int(clusteredges.EdgeSourceWorkerNumbered)); len(nodes) > 1 && f.Arrived == 0 {
		t.Error("no message came from another node")
	}
}
