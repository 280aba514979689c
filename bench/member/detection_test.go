package member

import (
	"fmt"
	"testing"
	"time"

	ml "github.com/hashicorp/memberlist"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/member"
)

// seeds is the number of runs for each row: TOPOGEN_SEEDS, or 1. All rows have the same seeds,
// because they are compared.
func seeds(t *testing.T) uint64 {
	first, end := speed.Seeds(t, 1, 1, 1)
	return end - first
}

// TestDetection prints a row for each setting of both subjects.
func TestDetection(t *testing.T) {
	speed.Long(t)
	for _, loss := range []int{0, 5, 10, 20} {
		t.Run(fmt.Sprintf("loss=%d", loss), func(t *testing.T) {
			t.Logf("| %-46s | median | 90 %% | missed | false positives | pauses that look like a death | packets per node and second |", "setting")
			t.Run("topogen", func(t *testing.T) { topogenRows(t, float64(loss)/100) })
			t.Run("memberlist", func(t *testing.T) { memberlistRows(t, float64(loss)/100) })
		})
	}
}

func topogenRows(t *testing.T, loss float64) {
	for _, suspicion := range []time.Duration{250, 500, 1000, 2000, 4000, 8000} {
		c := member.Config{Suspicion: suspicion * time.Millisecond}
		row(t, fmt.Sprintf("topogen, suspicion %v", c.Suspicion), func(seed uint64) Result {
			r, err := Topogen(Standard(loss, seed), c)
			if err != nil {
				t.Fatal(err)
			}
			return r
		})
	}
}

func memberlistRows(t *testing.T, loss float64) {
	for _, mult := range []int{1, 2, 3, 4, 6} {
		for _, spread := range []int{1, 6} {
			row(t, fmt.Sprintf("memberlist, SuspicionMult %d, MaxTimeoutMult %d", mult, spread), func(seed uint64) Result {
				return Memberlist(t, Standard(loss, seed), func(c *ml.Config) {
					c.SuspicionMult, c.SuspicionMaxTimeoutMult = mult, spread
				})
			})
		}
	}
}

// row prints the results of all seeds together.
func row(t *testing.T, name string, run func(seed uint64) Result) {
	t.Helper()
	var all Result
	for seed := range seeds(t) {
		all.add(run(seed))
	}
	t.Logf("| %-46s | %5.2f s | %5.2f s | %d of %d | %d | %d of %d | %.2f |", name,
		all.Quantile(0.5).Seconds(), all.Quantile(0.9).Seconds(), all.Missed, len(all.Detected)+all.Missed,
		all.Healthy, all.Sleeping, all.Pauses, all.PerSecond/float64(seeds(t)))
}
