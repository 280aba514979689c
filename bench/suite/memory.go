package suite

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/bench/topologies/crowd"
	"github.com/topogen/topogen/bench/topologies/mesh"
)

const (
	instanceBytesMax = 256     // a goal
	meshBytesMax     = 1 << 20 // a goal
	settleTime       = 50 * time.Millisecond
	settleLooksMax   = 100
)

// running returns the heap that a topology uses while it runs, in bytes, before its first
// message.
func running[T interface{ Run(context.Context) error }](make func() (T, error)) (bytes uint64, err error) {
	before := measure.Heap()
	topology, err := make()
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := startRun(ctx, topology.Run)
	after := settled()
	stop()
	err = <-ended
	runtime.KeepAlive(topology)
	return after - min(before, after), err
}

// settled returns the size of the heap when two readings in a row agree. By then the
// workers sleep, and the memory for starting is freed.
func settled() uint64 {
	before := measure.Heap()
	for range settleLooksMax {
		time.Sleep(settleTime)
		after := measure.Heap()
		if max(before, after)-min(before, after) <= after/1000 {
			return after
		}
		before = after
	}
	return before
}

func startRun(ctx context.Context, run func(context.Context) error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return ended
}

// CrowdBytes is the memory per instance of 100,000 instances before their first message.
func CrowdBytes() (float64, error) {
	bytes, err := running(func() (*crowd.Topology, error) { return crowd.New(crowd.Processors{}) })
	return float64(bytes) / crowd.Instances, err
}

// MeshBytes is the memory of 1,000 instances that one edge connects to 1,000.
func MeshBytes() (uint64, error) {
	return running(func() (*mesh.Topology, error) { return mesh.New(mesh.Processors{}) })
}

func idleMemory(Effort) (Section, error) {
	s := Section{
		Title:   "Memory before the first message",
		Note:    "Heap of a running topology.",
		Columns: []string{"", "bytes", ""},
	}
	instance, err := CrowdBytes()
	if err != nil {
		return s, err
	}
	pairs, err := MeshBytes()
	if err != nil {
		return s, err
	}
	s.Rows = [][]string{
		{"100,000 instances before their first message", fmt.Sprintf("%.0f", instance*crowd.Instances), fmt.Sprintf("%.0f per instance", instance)},
		{"1,000 × 1,000 instances joined by one edge", fmt.Sprint(pairs), fmt.Sprintf("%.1f per pair", float64(pairs)/1e6)},
	}
	s.Claims = []Claim{
		{"idle instance, of 100,000", "≤ 256 B", fmt.Sprintf("%.0f B", instance), instance <= instanceBytesMax},
		{"1,000 × 1,000 instances before the first message", "< 1 MB", fmt.Sprintf("%.2f MB", float64(pairs)/(1<<20)), pairs < meshBytesMax},
	}
	return s, nil
}
