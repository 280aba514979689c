package clusteredges

import (
	"fmt"
	"slices"
	"testing"

	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/pool"
)

// place puts instance i of most processors on node i, and burst and tight on different nodes.
func place(processor, instance int) int {
	switch ProcessorIndex(processor) {
	case ProcessorPinned, ProcessorTight:
		return 1
	case ProcessorBurst:
		return 0
	case ProcessorProbe, ProcessorWatcher, ProcessorApi:
		return clustertest.Everywhere
	}
	return instance
}

// outside is how many messages come from outside on each node, along each edge.
const outside = 50

// TestNodes runs the topology on several nodes. One worker for each node makes sure that all
// messages of burst are queued together.
func TestNodes(t *testing.T) {
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) { run(t, n, pool.Workers(1)) })
	}
}

// TestWorkers runs the topology with several workers on each node.
func TestWorkers(t *testing.T) {
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) { run(t, n, pool.Workers(3)) })
	}
}

func run(t *testing.T, n int, workers pool.Option) {
	make := func(_ int, opts ...pool.Option) (*Topology, error) {
		return New(Processors{}, append(opts, workers)...)
	}
	nodes := clustertest.Run(t, n, place, make, func(nodes []*Topology) {
		for i, top := range nodes {
			send(t, fmt.Sprint("api", i), top.Api())
		}
	})
	check(t, nodes)
	for i, top := range nodes {
		for j := range 2 {
			if n > 1 && (top.Gates(j) != nil) != (j%n == i) {
				t.Errorf("node %d runs instance %d of gates: %v", i, j, top.Gates(j) != nil)
			}
		}
	}
}

// TestCluster runs the topology on nodes of package cluster.
func TestCluster(t *testing.T) {
	make := func(_ int, opts ...pool.Option) (*Topology, error) {
		return New(Processors{}, append(opts, pool.Workers(1))...)
	}
	nodes := clustertest.RunCluster(t, 3, make, func(nodes []*Topology) {
		for i, top := range nodes {
			send(t, fmt.Sprint("api", i), top.Api())
		}
	})
	check(t, nodes)
	for i, top := range nodes {
		if v := top.Cluster(); v == nil || len(v.Nodes) != 3 || v.Node != fmt.Sprint("n", i+1) {
			t.Errorf("view of node %d: %+v", i+1, v)
		}
	}
}

// check checks what the instances have received.
func check(t *testing.T, nodes []*Topology) {
	t.Helper()
	if t.Failed() {
		return
	}
	checkWorkers(t, nodes)
	checkPartners(t, nodes)
	checkBurst(t, nodes)
	checkEdges(t, nodes)
}

func send(t *testing.T, by string, api *ApiSender) {
	for i := range outside {
		stamp := Stamp{by, i}
		for _, err := range []error{
			api.SendKeyed(t.Context(), Keyed{stamp, keys[i%len(keys)]}),
			api.SendAll(t.Context(), All{stamp, []byte("out")}),
			api.SendSingle(t.Context(), Single{by, i}),
			api.SendOldest(t.Context(), Oldest{100 + i}),
			api.SendEverywhere(t.Context(), Everywhere{by, i, []byte("out")}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	}
	api.Close()
}

// instance returns instance i of a processor, from the node that runs it.
func instance[P any](nodes []*Topology, of func(top *Topology) *P) *P {
	for _, top := range nodes {
		if p := of(top); p != nil {
			return p
		}
	}
	panic("no node runs the instance")
}

func checkWorkers(t *testing.T, nodes []*Topology) {
	t.Helper()
	count := make(map[string]int)
	for i := range 5 {
		w := instance(nodes, func(top *Topology) *Worker { return top.Worker(i) })
		if len(w.Unordered) > 0 {
			t.Errorf("worker %d: out of order: %v", i, w.Unordered)
		}
		for message, n := range w.Count {
			count[message] += n
		}
		if want := 3*Messages + len(nodes)*outside; w.Count["All"] != want {
			t.Errorf("worker %d: %d of All, want %d", i, w.Count["All"], want)
		}
		if w.Count["Numbered"] != 3*Messages/5 {
			t.Errorf("worker %d: %d of Numbered", i, w.Count["Numbered"])
		}
	}
	if count["Keyed"] != 3*Messages+len(nodes)*outside || count["Some"] != 3*3*Messages {
		t.Errorf("workers: %v", count)
	}
}

func checkPartners(t *testing.T, nodes []*Topology) {
	t.Helper()
	far := 0
	for i := range 3 {
		p := instance(nodes, func(top *Topology) *Partner { return top.Partner(i) })
		far += p.Count["Far"]
		if len(p.Unordered) > 0 || p.Count["Near"] != Messages {
			t.Errorf("partner %d: %+v", i, p.Log)
		}
	}
	pinned := instance(nodes, func(top *Topology) *Pinned { return top.Pinned(0) })
	if far != 3*Messages || pinned.Count["partner"] != far || pinned.Count["Single"] != 3*Messages || len(pinned.Unordered) > 0 {
		t.Errorf("%d of Far; pinned: %+v", far, pinned.Log)
	}
	near, gates := 0, 0
	for i, top := range nodes {
		if p, q := top.Probe(0), top.Probe(1); p.Count["Everywhere"] != 3*Messages || q.Count["Everywhere"] != 3*Messages || len(p.Unordered)+len(q.Unordered) > 0 {
			t.Errorf("node %d: the probes got %+v and %+v", i, p.Log, q.Log)
		}
		if w := top.Watcher(0); w.Count["Everywhere"] != 3*Messages+len(nodes)*outside || len(w.Unordered) > 0 {
			t.Errorf("node %d: the watcher got %+v", i, w.Log)
		}
		near += len(top.Probe(0).Near) + len(top.Probe(1).Near)
	}
	if near != 3*Messages {
		t.Errorf("probes: %d of Near", near)
	}
	for i := range 2 {
		g := instance(nodes, func(top *Topology) *Gates { return top.Gates(i) })
		gates += g.Count["Keyed"]
		if len(g.Unordered) > 0 || g.Must != Rounds || g.Single != i*len(nodes)*outside {
			t.Errorf("gates %d: %+v", i, g)
		}
	}
	if gates != 3*Messages {
		t.Errorf("gates: %d of Keyed", gates)
	}
}

func checkBurst(t *testing.T, nodes []*Topology) {
	t.Helper()
	burst := instance(nodes, func(top *Topology) *Burst { return top.Burst(0) })
	tight := instance(nodes, func(top *Topology) *Tight { return top.Tight(0) })
	pinned := instance(nodes, func(top *Topology) *Pinned { return top.Pinned(0) })
	oldest, newest, all := []int{6, 7, 8, 9}, []int{0, 1, 2, 3}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	if *burst != (Burst{Failed: 6, Sent: 4}) {
		t.Errorf("burst: %+v", burst)
	}
	if !slices.Equal(tight.Oldest, oldest) || !slices.Equal(tight.Newest, newest) || !slices.Equal(tight.Must, newest) || !slices.Equal(tight.Wait, all) {
		t.Errorf("tight: %+v", tight)
	}
	if own := slices.DeleteFunc(slices.Clone(pinned.Oldest), func(n int) bool { return n >= 100 }); !slices.Equal(own, oldest) {
		t.Errorf("pinned: %v of burst", own)
	}
	if !slices.Contains(pinned.Oldest, 100+outside-1) {
		t.Error("the last message from outside was dropped")
	}
	if got := nodes[0].Probe(0).Local; !slices.Equal(got, all) {
		t.Errorf("probe: %v", got)
	}
}

// checkEdges compares what the senders and the receivers have counted.
func checkEdges(t *testing.T, nodes []*Topology) {
	t.Helper()
	for e, sent := range map[EdgeIndex]uint64{
		EdgeSourceWorkerKeyed: 3 * Messages, EdgeSourceWorkerAll: 5 * 3 * Messages, EdgeSourcePartnerFar: 3 * Messages, EdgeSourcePinnedSingle: 3 * Messages,
		EdgeBurstTightOldest: Rounds, EdgeBurstTightWait: Rounds, EdgeTightGatesMust: 2 * Rounds, EdgeApiPinnedOldest: uint64(len(nodes) * outside),
	} {
		f := clustertest.Figures(nodes, int(e))
		if f.Sent != sent {
			t.Errorf("%v: %d sent, want %d", e, f.Sent, sent)
		}
		if len(nodes) == 1 && f.Arrived > 0 {
			t.Errorf("%v: %d messages came from another node", e, f.Arrived)
		}
	}
	if f := clustertest.Figures(nodes, int(EdgeSourceWorkerNumbered)); len(nodes) > 1 && f.Arrived == 0 {
		t.Error("no message came from another node")
	}
}
