package timernames

import (
	"errors"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/pool"
)

func TestEachTimerHasItsHandler(t *testing.T) {
	top, err := New(Processors{})
	if err != nil {
		t.Fatal(err)
	}
	s := top.Stepper(1)
	if err := s.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	for i, want := range []Meter{{100, 0, 50}, {100, 50, 50}} {
		if got := *top.Meter(i); got != want {
			t.Errorf("meter %d: %+v, want %+v", i, got, want)
		}
	}
	if got, want := *top.Planner(0), (Planner{100, 100}); got != want {
		t.Errorf("planner: %+v, want %+v", got, want)
	}
	var failed *pool.HandlerError
	if err := s.Advance(time.Hour); !errors.As(err, &failed) || failed.Edge != "every 1m0s -> planner: TickFail" || failed.Message != "TickFail" {
		t.Errorf("%v", err)
	}
}

func TestNames(t *testing.T) {
	for edge, want := range map[EdgeIndex]string{
		EdgeEveryMeterPoll:     "every 10ms as poll -> meter",
		EdgeEveryMeterFlushAll: "every 20ms as flush-all -> meter",
		EdgeEveryMeter20ms:     "every 20ms -> meter",
	} {
		if edge.String() != want {
			t.Errorf("%q, want %q", edge, want)
		}
	}
}
