package nodes

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/topogen/topogen/bench/topologies/oneway"
)

// turnCalls is how many calls each subject makes in its turn: few, so that other work on the
// computer slows down both.
const turnCalls = 50

// BenchmarkRoundTrip_ratio makes calls between two nodes and on a bare gRPC stream in turns, and
// reports the ratio of the medians. An operation is a call of both.
func BenchmarkRoundTrip_ratio(b *testing.B) {
	t, ended := twoNodes(b, 0)
	st := dialGRPC(b)
	took := map[bool][]time.Duration{}
	b.ResetTimer()
	for n := 0; n < b.N; n += turnCalls {
		for _, bare := range []bool{false, true} {
			for range min(turnCalls, b.N-n) {
				began := time.Now()
				if bare {
					call(b, st, make([]byte, messageBytes+1))
				} else if _, err := t.Api().AskQuestionToSink(context.Background(), oneway.Question{N: 1}); err != nil {
					b.Fatal(err)
				}
				took[bare] = append(took[bare], time.Since(began))
			}
		}
	}
	b.StopTimer()
	median := func(bare bool) float64 {
		slices.Sort(took[bare])
		return float64(took[bare][len(took[bare])/2])
	}
	b.ReportMetric(median(false)/1e3, "µs-topogen")
	b.ReportMetric(median(true)/1e3, "µs-gRPC")
	b.ReportMetric(median(false)/median(true), "ratio")
	finish(b, t, ended)
}
