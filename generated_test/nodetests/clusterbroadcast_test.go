package nodetests_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/topogen/topogen/generated_test/clusterbroadcast"
	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

func broadcastPlace(processor, instance int) int {
	if clusterbroadcast.ProcessorIndex(processor) == clusterbroadcast.ProcessorSource {
		return instance
	}
	return clustertest.Everywhere
}

// broadcastOutside is how many messages come from outside on each node.
const broadcastOutside = 30

// TestClusterBroadcastNodes checks that each instance on each node gets each message once and in order.
func TestClusterBroadcastNodes(t *testing.T) {
	t.Parallel()
	clustertest.Each(t, func(t *testing.T, n int, workers pool.Option) {
		nodes := clustertest.Run(t, n, broadcastPlace, func(node int, opts ...pool.Option) (*clusterbroadcast.Topology, error) {
			return clusterbroadcast.New(broadcastProcessors(node), append(opts, workers)...)
		}, func(nodes []*clusterbroadcast.Topology) {
			for i, top := range nodes {
				broadcastSend(t, i, top.Api())
			}
		})
		broadcastCheck(t, nodes)
	})
}

// TestClusterBroadcastCluster runs the topology on nodes of package cluster, with the engines of the file: the
// address table with broadcast, and failure detection with memberlist.
func TestClusterBroadcastCluster(t *testing.T) {
	t.Parallel()
	clustertest.Bubble(t, func(t *testing.T) {
		nodes := clustertest.RunCluster(t, 3, func(node int, opts ...pool.Option) (*clusterbroadcast.Topology, error) {
			return clusterbroadcast.New(broadcastProcessors(node), opts...)
		}, func(nodes []*clusterbroadcast.Topology) {
			for i, top := range nodes {
				broadcastSend(t, i, top.Api())
			}
		})
		broadcastCheck(t, nodes)
	})
}

// TestClusterBroadcastOneProcess runs the topology without the name of a node.
func TestClusterBroadcastOneProcess(t *testing.T) {
	top, err := clusterbroadcast.New(broadcastProcessors(0))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- top.Run(t.Context()) }()
	broadcastSend(t, 0, top.Api())
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	broadcastCheck(t, []*clusterbroadcast.Topology{top})
}

// TestClusterBroadcastIndex checks that the element for the other nodes is not an instance.
func TestClusterBroadcastIndex(t *testing.T) {
	top, err := clusterbroadcast.New(clusterbroadcast.Processors{})
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

func broadcastProcessors(node int) clusterbroadcast.Processors {
	return clusterbroadcast.Processors{Wide: func(in topo.Instance) (*clusterbroadcast.Wide, error) {
		if in.Number != 2 {
			return nil, fmt.Errorf("%d instances", in.Number)
		}
		return &clusterbroadcast.Wide{By: fmt.Sprintf("wide%d on %d", in.Index, node)}, nil
	}}
}

func broadcastSend(t *testing.T, node int, api *clusterbroadcast.ApiSender) {
	for i := range broadcastOutside {
		if err := api.SendWord(t.Context(), clusterbroadcast.Word{Stamp: clusterbroadcast.Stamp{By: fmt.Sprint("api", node), N: i}, Text: []byte("word")}); err != nil {
			t.Error(err)
		}
		if err := api.SendNear(t.Context(), clusterbroadcast.Near{N: i}); err != nil {
			t.Error(err)
		}
	}
	api.Close()
}

func broadcastCheck(t *testing.T, nodes []*clusterbroadcast.Topology) {
	t.Helper()
	wide, narrow := map[string]int{}, map[string]int{}
	for i := range 3 {
		by := fmt.Sprint("source", i)
		wide["Word of "+by], wide["Must of "+by], narrow["Word of "+by] = clusterbroadcast.Messages, clusterbroadcast.Messages, clusterbroadcast.Messages
	}
	words := 3*clusterbroadcast.Messages + len(nodes)*broadcastOutside
	for i := range nodes {
		wide[fmt.Sprint("Word of api", i)] = broadcastOutside
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
		if !maps.Equal(x.Next, narrow) || len(x.Faults) > 0 || x.Near != 2*words+broadcastOutside {
			t.Errorf("narrow on node %d: %v, want %v; %d of Near; %v", i, x.Next, narrow, x.Near, x.Faults)
		}
	}
	if near != 3*clusterbroadcast.Messages {
		t.Errorf("wide: %d of Near", near)
	}
}
