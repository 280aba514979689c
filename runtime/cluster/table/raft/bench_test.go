package raft_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/cluster/table/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// heap returns the bytes of live objects.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkJoin measures how long a node takes to join a cluster of three nodes with
// 100,000 containers, and how much memory its table takes. No two neighbors among the
// containers are on the same node, which is the worst case for the size of a snapshot.
func BenchmarkJoin(b *testing.B) {
	const containers = 100_000
	c := &cluster{network: transport.NewMemory(transport.MemoryOptions{}), dir: b.TempDir()}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	open := func(name string) *node {
		link, err := c.network.Join(name)
		if err != nil {
			b.Fatal(err)
		}
		config := c.config(name)
		config.Transport, config.Logger = link, slog.New(slog.DiscardHandler)
		config.ElectionTimeout, config.Heartbeat = 0, 0 // as in production
		config.ReplaceAfter = time.Millisecond
		o, err := raft.Open(config)
		if err != nil {
			b.Fatal(err)
		}
		return &node{o, link}
	}
	nodes, before := map[string]*node{}, heap()
	for name := range first {
		nodes[name] = open(name)
		defer nodes[name].Close()
	}
	n1 := nodes["n1"]
	changes := []table.Change{table.Define{Plan: "plan-1", Processors: []table.Processor{{Name: "counter", Instances: containers}}}}
	for name := range first {
		changes = append(changes, table.Join{Node: table.Node{Name: name}})
	}
	for i := 0; i < containers; i++ {
		changes = append(changes, table.Assign{Processor: "counter", First: i, Count: 1, Node: []string{"n1", "n2", "n3"}[i%3]})
		if len(changes) >= 40_000 || i == containers-1 {
			if _, err := n1.Txn(ctx, nil, changes); err != nil {
				b.Fatal(err)
			}
			changes = nil
		}
	}
	voters := float64(heap()) - float64(before)
	joins, used := 0, 0.0
	for b.Loop() {
		joins++
		b.StopTimer()
		before := heap()
		name := fmt.Sprint("extra", joins)
		b.StartTimer()
		n := open(name)
		if err := table.Enter(ctx, n, table.Node{Name: name, Boot: 1, Plan: "plan-1"}); err != nil {
			b.Fatal(err)
		}
		counter, _, _ := n.Replica().Processor("counter")
		if place, _ := n.Replica().Lookup(counter, containers-1); place == nil {
			b.Fatal("the node has joined without the table")
		}
		b.StopTimer()
		used += float64(heap()) - float64(before)
		if err := n.Close(); err != nil {
			b.Fatal(err)
		}
		if _, err := n1.Txn(ctx, nil, []table.Change{table.Forget{Name: name}}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(used/float64(joins)/containers, "B/container")
	b.ReportMetric(voters/3/containers, "voter-B/container")
	b.ReportMetric(float64(len(n1.Replica().Append(nil)))/containers, "snapshot-B/container")
}
