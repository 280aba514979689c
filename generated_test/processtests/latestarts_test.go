package processtests_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/topogen/topogen/generated_test/latestarts"
	"github.com/topogen/topogen/runtime/pool"
)

// TestLateStarts checks that each start that takes longer than its timeout counts as a failure,
// also the first one, and that its process is killed.
func TestLateStarts(t *testing.T) {
	top, err := latestarts.New(latestarts.Processors{}, pool.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Api().SendOrder(t.Context(), latestarts.Order{}); err != nil {
		t.Fatal(err)
	}
	top.Api().Close()
	if err := top.Run(t.Context()); !errors.Is(err, pool.ErrGaveUp) {
		t.Errorf("Run returns %v", err)
	}
	if f := *top.Snapshot().Processors[latestarts.ProcessorPart].Faults; f != (pool.FaultFigures{HealthCheckKills: 3, Dropped: 1, GaveUp: 1}) {
		t.Errorf("%+v", f)
	}
}
