package addresses

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// BenchmarkJoin measures how long a node takes to join a cluster with 100,000 containers,
// and how much memory its table takes. No two neighbors among the containers are on the
// same node.
func BenchmarkJoin(b *testing.B) {
	const containers = 100_000
	c := &cluster{server: startServer(b), prefix: "/bench"}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	o := c.open(b)
	defer o.Close()
	changes := []table.Change{table.Define{Plan: "plan-1", Processors: []table.Processor{{Name: "counter", Instances: containers}}}}
	for _, n := range nodes {
		changes = append(changes, table.Join{Node: n})
	}
	for i := range containers {
		changes = append(changes, table.Assign{Processor: "counter", First: i, Count: 1, Node: nodes[i%3].Name})
		if len(changes) >= 40_000 || i == containers-1 {
			if _, err := o.Txn(ctx, nil, changes); err != nil {
				b.Fatal(err)
			}
			changes = nil
		}
	}
	joins, used := 0, 0.0
	for b.Loop() {
		joins++
		b.StopTimer()
		before := heap()
		b.StartTimer()
		late := c.open(b)
		if err := late.Sync(ctx); err != nil {
			b.Fatal(err)
		}
		counter, _, _ := late.Replica().Processor("counter")
		if n, _ := late.Replica().Lookup(counter, containers-1); n == nil {
			b.Fatal("the node has joined without the table")
		}
		b.StopTimer()
		used += float64(heap()) - float64(before)
		if err := late.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(used/float64(joins)/containers, "B/container")
}

// heap returns the bytes of live objects.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
