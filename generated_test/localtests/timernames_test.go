package localtests_test

import (
	"errors"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/timernames"
	"github.com/topogen/topogen/runtime/pool"
)

func TestTimerNamesEachTimerHasItsHandler(t *testing.T) {
	top, err := timernames.New(timernames.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	s := top.Stepper(1)
	if err := s.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	for i, want := range []timernames.Meter{{Polled: 100, Flushed: 0, Ticked: 50}, {Polled: 100, Flushed: 50, Ticked: 50}} {
		if got := *top.Meter(i); got != want {
			t.Errorf("meter %d: %+v, want %+v", i, got, want)
		}
	}
	if got, want := *top.Planner(0), (timernames.Planner{Polled: 100, Watched: 100}); got != want {
		t.Errorf("planner: %+v, want %+v", got, want)
	}
	var failed *pool.HandlerError
	if err := s.Advance(time.Hour); !errors.As(err, &failed) || failed.Edge != "every 1m0s -> planner: TickFail" || failed.Message != "TickFail" {
		t.Errorf("%v", err)
	}
}

func TestTimerNamesNames(t *testing.T) {
	for edge, want := range map[timernames.EdgeIndex]string{timernames.EdgeEveryMeterPoll: "every 10ms as poll -> meter", timernames.EdgeEveryMeterFlushAll: "every 20ms as flush-all -> meter", timernames.EdgeEveryMeter20ms: "every 20ms -> meter"} {
		if edge.String() != want {
			t.Errorf("%q, want %q", edge, want)
		}
	}
}
