package clustergather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

func place(processor, instance int) int {
	switch ProcessorIndex(processor) {
	case ProcessorCounter, ProcessorTight:
		return instance + 1
	}
	return clustertest.Everywhere
}

// name is the name of a node.
func name(node int) string { return fmt.Sprint("n", node+1) }

// processors names the instances of a node.
func processors(node string, release chan struct{}) Processors {
	named := func(in topo.Instance) counting { return counting{name: fmt.Sprint(in.Processor, in.Index)} }
	here := func(in topo.Instance) counting { return counting{name: fmt.Sprint(in.Processor, in.Index, node)} }
	return Processors{
		Counter: func(in topo.Instance) (*Counter, error) { return &Counter{named(in)}, nil },
		Tight:   func(in topo.Instance) (*Tight, error) { return &Tight{named(in)}, nil },
		Probe:   func(in topo.Instance) (*Probe, error) { return &Probe{here(in)}, nil },
		Wide: func(in topo.Instance) (*Wide, error) {
			return &Wide{counting: here(in), node: node, Release: release}, nil
		},
	}
}

// TestNodes asks from several goroutines on each node.
func TestNodes(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d nodes, %d workers", n, workers), func(t *testing.T) {
				a := asking{nodes: n, release: make(chan struct{})}
				clustertest.Run(t, n, place, func(node int, opts ...pool.Option) (*Topology, error) {
					return New(processors(name(node), a.release), append(opts, pool.Workers(workers))...)
				}, func(nodes []*Topology) { a.all(t, nodes) })
			})
		}
	}
}

// TestCluster does the same on nodes of package cluster.
func TestCluster(t *testing.T) {
	a := asking{nodes: 3, release: make(chan struct{})}
	clustertest.RunCluster(t, 3, func(node int, opts ...pool.Option) (*Topology, error) {
		return New(processors(name(node), a.release), opts...)
	}, func(nodes []*Topology) { a.all(t, nodes) })
}

// TestOneProcess asks without nodes.
func TestOneProcess(t *testing.T) {
	a := asking{release: make(chan struct{})}
	top, err := New(processors("", a.release))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- top.Run(t.Context()) }()
	a.all(t, []*Topology{top})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// TestStepper asks in virtual time.
func TestStepper(t *testing.T) {
	a := asking{release: make(chan struct{})}
	top, err := New(processors("", a.release))
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
	callers = 3  // on each node
	asks    = 20 // by each caller
)

func (a *asking) all(t *testing.T, nodes []*Topology) {
	var all sync.WaitGroup
	for i, top := range nodes {
		own := ""
		if a.nodes > 0 {
			own = name(i)
		}
		for k := range callers {
			all.Go(func() {
				for n := range asks {
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
			own = name(i)
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
		if name(i) != own {
			nodes = append(nodes, name(i))
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
func expect(t *testing.T, got Total, err error, n int, names []string, without string) {
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
	if !ok || partial.Answered != len(want) || partial.Of != len(names) || !errors.Is(err, topo.ErrFailed) || !strings.Contains(err.Error(), ErrCounter.Error()) {
		t.Errorf("the error is %v, want %d of %d and %v", err, len(want), len(names), ErrCounter)
	}
}

func (a *asking) counters(t *testing.T, api *ApiSender, n int) {
	t.Helper()
	names := []string{"counter0", "counter1", "counter2", "counter3"}
	for _, fails := range []string{"", "counter0", "counter2"} {
		got, err := api.AskCountToCounter(t.Context(), Count{n, fails, []byte("text")})
		expect(t, got, err, n, names, fails)
	}
	got, err := api.AskSome(t.Context(), Some{n})
	expect(t, got, err, n, names[1:3], "")
	if err := api.SendCountToCounter(t.Context(), Count{n, "", []byte("text")}); err != nil { // its replies are not needed
		t.Error(err)
	}
}

func (a *asking) probes(t *testing.T, api *ApiSender, own string, n int) {
	t.Helper()
	names := a.everywhere("probe", 2, own)
	for _, fails := range []string{"", "probe1" + own, names[len(names)-1]} {
		got, err := api.AskCountToProbe(t.Context(), Count{n, fails, []byte("text")})
		expect(t, got, err, n, names, fails)
	}
}

// full asks along edges whose queues are often full.
func (a *asking) full(t *testing.T, api *ApiSender, own string, n int) {
	t.Helper()
	got, err := api.AskCountToTight(t.Context(), Count{n, "", []byte("text")})
	a.checkFull(t, got, err, n, []string{"tight0", "tight1"})
	got, err = api.AskCountToWide(t.Context(), Count{n, "", []byte("text")})
	a.checkFull(t, got, err, n, a.everywhere("wide", 1, own))
}

func (a *asking) checkFull(t *testing.T, got Total, err error, n int, names []string) {
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
func (a *asking) late(t *testing.T, api *ApiSender, own string) {
	t.Helper()
	silent := own
	if a.nodes > 0 {
		silent = name(a.nodes - 1)
	}
	names := a.everywhere("wide", 1, own)
	got, err := api.AskWait(t.Context(), Wait{1, silent})
	partial, ok := errors.AsType[*topo.PartialError](err)
	if !ok || !errors.Is(err, context.DeadlineExceeded) || partial.Answered != len(got.By) || partial.Answered >= len(names) || partial.Of > len(names) || slices.Contains(got.By, "wide0"+silent) {
		t.Errorf("%+v, %v", got, err)
	}
}
