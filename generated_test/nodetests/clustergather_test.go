package nodetests_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/topogen/topogen/generated_test/clustergather"
	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

func gatherPlace(processor, instance int) int {
	switch clustergather.ProcessorIndex(processor) {
	case clustergather.ProcessorCounter, clustergather.ProcessorTight:
		return instance + 1
	}
	return clustertest.Everywhere
}

// gatherProcessors names the instances of a node.
func gatherProcessors(node string, release chan struct{}) clustergather.Processors {
	named := func(in topo.Instance) clustergather.Counting {
		return clustergather.Counting{Name: fmt.Sprint(in.Processor, in.Index)}
	}
	here := func(in topo.Instance) clustergather.Counting {
		return clustergather.Counting{Name: fmt.Sprint(in.Processor, in.Index, node)}
	}
	return clustergather.Processors{
		Counter: func(in topo.Instance) (*clustergather.Counter, error) {
			return &clustergather.Counter{Counting: named(in)}, nil
		},
		Tight: func(in topo.Instance) (*clustergather.Tight, error) {
			return &clustergather.Tight{Counting: named(in)}, nil
		},
		Probe: func(in topo.Instance) (*clustergather.Probe, error) {
			return &clustergather.Probe{Counting: here(in)}, nil
		},
		Wide: func(in topo.Instance) (*clustergather.Wide, error) {
			return &clustergather.Wide{Counting: here(in), Node: node, Release: release}, nil
		},
	}
}

// TestClusterGatherNodes asks from several goroutines on each node.
func TestClusterGatherNodes(t *testing.T) {
	t.Parallel()
	clustertest.Each(t, func(t *testing.T, n int, workers pool.Option) {
		clustertest.Bubble(t, func(t *testing.T) {
			a := asking{nodes: n, release: make(chan struct{})}
			clustertest.Run(t, n, gatherPlace, func(node int, opts ...pool.Option) (*clustergather.Topology, error) {
				return clustergather.New(gatherProcessors(nodeName(node), a.release), append(opts, workers)...)
			}, func(nodes []*clustergather.Topology) { a.all(t, nodes) })
		})
	})
}

// TestClusterGatherCluster does the same on nodes of package cluster.
func TestClusterGatherCluster(t *testing.T) {
	t.Parallel()
	clustertest.Bubble(t, func(t *testing.T) {
		a := asking{nodes: 3, release: make(chan struct{})}
		clustertest.RunCluster(t, 3, func(node int, opts ...pool.Option) (*clustergather.Topology, error) {
			return clustergather.New(gatherProcessors(nodeName(node), a.release), opts...)
		}, func(nodes []*clustergather.Topology) { a.all(t, nodes) })
	})
}

// TestClusterGatherOneProcess asks without nodes.
func TestClusterGatherOneProcess(t *testing.T) {
	t.Parallel()
	a := asking{release: make(chan struct{})}
	top, err := clustergather.New(gatherProcessors("", a.release))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- top.Run(t.Context()) }()
	a.all(t, []*clustergather.Topology{top})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// TestClusterGatherStepper asks in virtual time.
func TestClusterGatherStepper(t *testing.T) {
	a := asking{release: make(chan struct{})}
	top, err := clustergather.New(gatherProcessors("", a.release))
	if err != nil {
		t.Fatal(err)
	}
	s := top.Stepper(1)
	a.counters(t, top.Api(), 1)
	a.probes(t, top.Api(), "", 1)
	top.Api().Close()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
}

// asking asks along all edges.
type asking struct {
	nodes   int // 0: one process without nodes
	release chan struct{}
}

const (
	gatherCallers = 3  // on each node
	gatherAsks    = 20 // by each caller
)

func (a *asking) all(t *testing.T, nodes []*clustergather.Topology) {
	var all sync.WaitGroup
	for i, top := range nodes {
		own := ""
		if a.nodes > 0 {
			own = nodeName(i)
		}
		for k := range gatherCallers {
			all.Go(func() {
				for n := range gatherAsks {
					a.counters(t, top.Api(), 1000*k+n+1)
					a.probes(t, top.Api(), own, 1000*k+n+1)
					a.full(t, top.Api(), own, 1000*k+n+1)
				}
			})
		}
	}
	all.Wait()
	for i, top := range nodes {
		own := ""
		if a.nodes > 0 {
			own = nodeName(i)
		}
		a.late(t, top.Api(), own)
	}
	close(a.release)
	for _, top := range nodes {
		top.Api().Close()
	}
}

// everywhere are the names of all instances of a processor on every node, as a caller on a
// node gets them: first those of its own node.
func (a *asking) everywhere(processor string, instances int, own string) (names []string) {
	nodes := []string{own}
	for i := range a.nodes {
		if nodeName(i) != own {
			nodes = append(nodes, nodeName(i))
		}
	}
	for _, node := range nodes {
		for i := range instances {
			names = append(names, fmt.Sprint(processor, i, node))
		}
	}
	return names
}

// expect checks a reply of instances, some of which may have failed.
func expect(t *testing.T, got clustergather.Total, err error, n int, names []string, without string) {
	t.Helper()
	want := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == without })
	if !slices.Equal(got.By, want) || got.Sum != n*len(want) {
		t.Errorf("the reply is %+v, want %d of each of %v", got, n, want)
	}
	if len(want) == len(names) {
		if err != nil {
			t.Error(err)
		}
		return
	}
	partial, ok := errors.AsType[*topo.PartialError](err)
	if !ok || partial.Answered != len(want) || partial.Of != len(names) || !errors.Is(err, topo.ErrFailed) || !strings.Contains(err.Error(), clustergather.ErrCounter.Error()) {
		t.Errorf("the error is %v, want %d of %d and %v", err, len(want), len(names), clustergather.ErrCounter)
	}
}

func (a *asking) counters(t *testing.T, api *clustergather.ApiSender, n int) {
	t.Helper()
	names := []string{"counter0", "counter1", "counter2", "counter3"}
	for _, fails := range []string{"", "counter0", "counter2"} {
		got, err := api.AskCountToCounter(t.Context(), clustergather.Count{N: n, Fails: fails, Text: []byte("text")})
		expect(t, got, err, n, names, fails)
	}
	got, err := api.AskSome(t.Context(), clustergather.Some{N: n})
	expect(t, got, err, n, names[1:3], "")
	if err := api.SendCountToCounter(t.Context(), clustergather.Count{N: n, Fails: "", Text: []byte("text")}); err != nil { // its replies are not needed
		t.Error(err)
	}
}

func (a *asking) probes(t *testing.T, api *clustergather.ApiSender, own string, n int) {
	t.Helper()
	names := a.everywhere("probe", 2, own)
	for _, fails := range []string{"", "probe1" + own, names[len(names)-1]} {
		got, err := api.AskCountToProbe(t.Context(), clustergather.Count{N: n, Fails: fails, Text: []byte("text")})
		expect(t, got, err, n, names, fails)
	}
}

// full asks along edges whose queues are often full.
func (a *asking) full(t *testing.T, api *clustergather.ApiSender, own string, n int) {
	t.Helper()
	got, err := api.AskCountToTight(t.Context(), clustergather.Count{N: n, Fails: "", Text: []byte("text")})
	a.checkFull(t, got, err, n, []string{"tight0", "tight1"})
	got, err = api.AskCountToWide(t.Context(), clustergather.Count{N: n, Fails: "", Text: []byte("text")})
	a.checkFull(t, got, err, n, a.everywhere("wide", 1, own))
}

func (a *asking) checkFull(t *testing.T, got clustergather.Total, err error, n int, names []string) {
	t.Helper()
	if err == nil {
		expect(t, got, err, n, names, "")
		return
	}
	partial, ok := errors.AsType[*topo.PartialError](err)
	if !ok || !errors.Is(err, topo.ErrFull) || partial.Answered != len(got.By) || got.Sum != n*len(got.By) || partial.Answered >= len(names) {
		t.Errorf("%+v, %v", got, err)
	}
}

// late asks several instances, and one of them does not answer before the timeout.
func (a *asking) late(t *testing.T, api *clustergather.ApiSender, own string) {
	t.Helper()
	silent := own
	if a.nodes > 0 {
		silent = nodeName(a.nodes - 1)
	}
	names := a.everywhere("wide", 1, own)
	got, err := api.AskWait(t.Context(), clustergather.Wait{N: 1, Node: silent})
	partial, ok := errors.AsType[*topo.PartialError](err)
	if !ok || !errors.Is(err, context.DeadlineExceeded) || partial.Answered != len(got.By) || partial.Answered >= len(names) || partial.Of > len(names) || slices.Contains(got.By, "wide0"+silent) {
		t.Errorf("%+v, %v", got, err)
	}
}
