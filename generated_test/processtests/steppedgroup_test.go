//go:build unix

package processtests_test

import (
	"log/slog"
	"testing"

	"github.com/topogen/topogen/generated_test/steppedgroup"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/pool"
)

// TestSteppedGroupRunsToItsEnd checks that a Stepper runs a topology to its end, even if the
// processes of a restart group fail, hang, end between calls, and are restarted together.
func TestSteppedGroupRunsToItsEnd(t *testing.T) {
	speed.Landing(t)
	for seed := range uint64(8) {
		top, err := steppedgroup.New(steppedgroup.Processors{}, pool.Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		s := top.Stepper(seed)
		t.Cleanup(s.Close)
		if err := s.Run(); err != nil || !s.Ended() {
			t.Errorf("seed %d: Run returns %v before the end", seed, err)
		}
		f := top.Snapshot()
		for _, e := range f.Edges {
			if e.Len != 0 || e.Sent != e.Received+e.Dropped {
				t.Errorf("seed %d: %+v", seed, e)
			}
		}
		if n := f.Faults.HealthCheckKills; n < 2 {
			t.Errorf("seed %d: %d processes that hang were killed, and one job hangs in two attempts", seed, n)
		}
		if f.Faults.Restarts < 5 {
			t.Errorf("seed %d: only %d restarts", seed, f.Faults.Restarts)
		}
	}
}
