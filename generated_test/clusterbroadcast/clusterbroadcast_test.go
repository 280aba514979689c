package clusterbroadcast

import (
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

func place(processor, instance int) int {
	if ProcessorIndex(processor) == ProcessorSource {
		return instance
	}
	return clustertest.Everywhere
}

// outside is how many messages come from outside on each node.
const outside = 30

// TestNodes checks that each instance on each node gets each message once and in order.
func TestNodes(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d nodes, %d workers", n, workers), func(t *testing.T) {
				nodes := clustertest.Run(t, n, place, func(node int, opts ...pool.Option) (*Topology, error) {
					return New(processors(node), append(opts, pool.Workers(workers))...)
				}, func(nodes []*Topology) {
					for i, top := range nodes {
						send(t, i, top.Api())
					}
				})
				check(t, nodes)
			})
		}
	}
}

// TestCluster runs the topology on nodes of package cluster, with the engines of the file: the
// address table with broadcast, and failure detection with memberlist.
func TestCluster(t *testing.T) {
	if os.Getenv("CI") == "" {
		t.Skip("a long test: set CI to run it")
	}
	nodes := clustertest.RunCluster(t, 3, func(node int, opts ...pool.Option) (*Topology, error) {
		return New(processors(node), opts...)
	}, func(nodes []*Topology) {
		for i, top := range nodes {
			send(t, i, top.Api())
		}
	})
	check(t, nodes)
}

// TestOneProcess runs the topology without the name of a node.
func TestOneProcess(t *testing.T) {
	top, err := New(processors(0))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- top.Run(t.Context()) }()
	send(t, 0, top.Api())
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	check(t, []*Topology{top})
}

// TestIndex checks that the element for the other nodes is not an instance.
func TestIndex(t *testing.T) {
	top, err := New(Processors{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(top.Snapshot().Processors); n != 4 {
		t.Errorf("%d processors", n)
	}
	defer func() {
		if recover() == nil {
			t.Error("there is an instance 2")
		}
	}()
	top.Wide(2)
}

func processors(node int) Processors {
	return Processors{Wide: func(in topo.Instance) (*Wide, error) {
		if in.Number != 2 {
			return nil, fmt.Errorf("%d instances", in.Number)
		}
		return &Wide{By: fmt.Sprintf("wide%d on %d", in.Index, node)}, nil
	}}
}

func send(t *testing.T, node int, api *ApiSender) {
	for i := range outside {
		if err := api.SendWord(t.Context(), Word{Stamp{fmt.Sprint("api", node), i}, []byte("word")}); err != nil {
			t.Error(err)
		}
		if err := api.SendNear(t.Context(), Near{i}); err != nil {
			t.Error(err)
		}
	}
	api.Close()
}

func check(t *testing.T, nodes []*Topology) {
	t.Helper()
	wide, narrow := map[string]int{}, map[string]int{}
	for i := range 3 {
		by := fmt.Sprint("source", i)
		wide["Word of "+by], wide["Must of "+by], narrow["Word of "+by] = messages, messages, messages
	}
	words := 3*messages + len(nodes)*outside
	for i := range nodes {
		wide[fmt.Sprint("Word of api", i)] = outside
		for j := range 2 {
			narrow[fmt.Sprintf("Echo of wide%d on %d", j, i)] = words
		}
	}
	near := 0
	for i, top := range nodes {
		for j := range 2 {
			w := top.Wide(j)
			near += w.Near
			if !maps.Equal(w.Next, wide) || len(w.Faults) > 0 {
				t.Errorf("instance %d of wide on node %d: %v, want %v; %v", j, i, w.Next, wide, w.Faults)
			}
		}
		x := top.Narrow(0)
		if !maps.Equal(x.Next, narrow) || len(x.Faults) > 0 || x.Near != 2*words+outside {
			t.Errorf("narrow on node %d: %v, want %v; %d of Near; %v", i, x.Next, narrow, x.Near, x.Faults)
		}
	}
	if near != 3*messages {
		t.Errorf("wide: %d of Near", near)
	}
}
