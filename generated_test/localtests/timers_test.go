package localtests_test

import (
	"errors"
	"github.com/topogen/topogen/generated_test/timers"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTimersTicks(t *testing.T) {
	top, err := timers.New(timers.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	s := top.Stepper(1)
	if err := s.Advance(3*time.Second + time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if n := top.One(0).Ticks; n != 0 { // feed ended at once, and no other input was left
		t.Errorf("one: %d ticks", n)
	}
	for i := range 3 {
		if n := top.All(i).Ticks; n != 300 {
			t.Errorf("all %d: %d ticks", i, n)
		}
	}
	for i, want := range []int{0, 300, 300, 0} {
		if n := top.Some(i).Ticks; n != want {
			t.Errorf("some %d: %d ticks", i, n)
		}
	}
	if last := top.Two(0).Last; !slices.Equal(last, []uint64{1, 1, 2, 2, 3}) && !slices.Equal(last, []uint64{1, 1, 2, 3, 2}) {
		t.Errorf("two: %v", last)
	}
	err = s.Advance(2 * time.Minute)
	if !errors.Is(err, timers.ErrTick) || !strings.Contains(err.Error(), "every 1m30s -> errors") {
		t.Error(err)
	}
}
