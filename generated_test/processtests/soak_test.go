package processtests_test

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/soak"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/pool"
)

const soakHeapSlack = 4 << 20 // bytes, because the time of a garbage collection is random

// TestSoak runs a busy topology whose instances fail, hang and are killed all the time. It
// checks that memory and goroutines do not grow, and that at the end each sent message was
// received, was dropped and counted, or is queued.
func TestSoak(t *testing.T) {
	length := speed.Pick(t, 400*time.Millisecond, 3*time.Second, 5*time.Minute)
	samples := speed.Pick(t, 12, 60, 60)
	top, err := soak.New(soak.Processors{}, pool.Logger(slog.New(slog.DiscardHandler)), pool.DrainTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- top.Run(t.Context()) }()
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	accepted := make(chan int, 1)
	go func() {
		n := 0
		for top.Api().SendJob(ctx, soak.Job{N: n}) == nil {
			n++
		}
		top.Api().Close()
		accepted <- n
	}()

	var heaps, goroutines []int64
	ticks := time.NewTicker(length / time.Duration(samples))
	defer ticks.Stop()
	for ctx.Err() == nil {
		select {
		case err := <-ended:
			t.Fatalf("Run has ended: %v", err)
		case <-ticks.C:
		}
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		heaps, goroutines = append(heaps, int64(s.HeapAlloc)), append(goroutines, int64(runtime.NumGoroutine()))
	}
	n := <-accepted
	if err := <-ended; err != nil {
		t.Errorf("Run returns %v", err)
	}
	flatSoak(t, "heap", heaps, soakHeapSlack)
	flatSoak(t, "goroutines", goroutines, 10)
	s := top.Snapshot()
	for _, f := range s.Edges {
		if f.Sent != f.Received+f.Dropped+uint64(f.Len) || f.Len != 0 || f.Late != 0 {
			t.Errorf("%s -> %s: %+v", f.From, f.To, f)
		}
	}
	if f := s.Edges[soak.EdgeApiNearJob]; int(f.Sent) != n {
		t.Errorf("%d were accepted: %+v", n, f)
	}
	if f := s.Faults; f.Restarts == 0 || f.Abandoned == 0 || uint64(soak.Hangs.Load()) < f.Abandoned-s.Processors[soak.ProcessorFar].Faults.Abandoned {
		t.Errorf("%d calls were abandoned: %+v", soak.Hangs.Load(), *f)
	}
	t.Logf("%d jobs, %+v, heap %d to %d KiB, goroutines %d to %d", n, *s.Faults,
		slices.Min(heaps)>>10, slices.Max(heaps)>>10, slices.Min(goroutines), slices.Max(goroutines))
}

// flatSoak compares the median of the last third with the median of the second third.
func flatSoak(t *testing.T, what string, v []int64, slack int64) {
	t.Helper()
	third := len(v) / 3
	middle, last := slices.Sorted(slices.Values(v[third:2*third])), slices.Sorted(slices.Values(v[2*third:]))
	if before, after := middle[len(middle)/2], last[len(last)/2]; after > before+before/10+slack {
		t.Errorf("%s grows from %d to %d: %v", what, before, after, v)
	}
}
