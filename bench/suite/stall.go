package suite

import (
	"fmt"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/bench/topologies/stall"
	"github.com/topogen/topogen/runtime/pool"
)

const heapFactorMax = 1.2 // a goal, relative to capacities × message size

// StalledHeap returns the growth of the heap while the consumer of a shape stalls, as a
// multiple of capacities × message size, and the number of messages in the queues.
func StalledHeap(s stall.Shape) (times float64, held int, err error) {
	var before, after uint64
	err = s.Run(func() { before = measure.Heap() }, func(n int) { after, held = measure.Heap(), n }, pool.Logger(silent))
	return (float64(after) - float64(before)) / float64(capacities(s)*stall.MessageSize), held, err
}

// capacities is the sum of the capacities of all edges of a shape, in messages.
func capacities(s stall.Shape) int { return len(s.Edges) * stall.Capacity }

func stalled(Effort) (Section, error) {
	s := Section{
		Title: "Heap behind a stalled consumer",
		Note: fmt.Sprintf("Messages of %d bytes, capacities of %d. The consumer handles 10,000 messages and then stops. When no instance can continue, the benchmark compares the growth of the heap since the start with the contents of the queues.",
			stall.MessageSize, stall.Capacity),
		Columns: []string{"", "heap ÷ (capacities × message size)", "messages held ÷ capacities"},
	}
	for _, shape := range stall.Shapes {
		times, held, err := StalledHeap(shape)
		if err != nil {
			return s, fmt.Errorf("%s: %w", shape.Name, err)
		}
		s.Rows = append(s.Rows, []string{shape.Name, fmt.Sprintf("%.2f", times), fmt.Sprintf("%.2f", float64(held)/float64(capacities(shape)))})
		goal := heapFactorMax
		what := "heap behind a stalled consumer: " + shape.Name
		if shape.SentBeyondCapacity > 0 {
			goal *= 1 + float64(shape.SentBeyondCapacity)/float64(capacities(shape))
			what += " (plus the messages that one call may send beyond the capacity)"
		}
		s.Claims = append(s.Claims, Claim{what, fmt.Sprintf("≤ %.2f×", goal), fmt.Sprintf("%.2f×", times), times <= goal})
	}
	return s, nil
}
