package clock

import (
	"fmt"
	"testing"
	"time"
)

// follower calls a PeriodicTimer and computes what it should return.
type follower struct {
	timer           PeriodicTimer
	begin, reading  time.Time     // the first call since Reset, the last call that read the clock
	sum             time.Duration // of the results since Reset
	calls, interval int           // since the last reading, and before it
}

// passed calls Passed and checks invariants that hold for every calling pattern.
func (f *follower) passed() error {
	now := time.Now()
	first, reads, forced := !f.timer.begun, f.timer.left == 0, f.timer.steps == 0
	passed := f.timer.Passed()
	if first {
		f.begin, f.reading = now, now
	}
	before := f.sum
	f.sum += passed
	f.calls++
	switch real := now.Sub(f.begin); {
	case passed < 0:
		return fmt.Errorf("Passed returned %v", passed)
	case f.sum > real:
		return fmt.Errorf("%v has passed, but the sum is %v", real, f.sum)
	case first && passed != 0:
		return fmt.Errorf("the first call returned %v", passed)
	case !reads && passed > period/2:
		return fmt.Errorf("the extrapolated result is %v", passed)
	case !reads:
		return nil
	case forced && f.sum != real:
		return fmt.Errorf("after WindUp: %v has passed, but the sum is %v", real, f.sum)
	case !forced && before != f.reading.Sub(f.begin):
		return fmt.Errorf("at a reading the sum was %v, want %v as at the reading before", before, f.reading.Sub(f.begin))
	case real-f.sum > now.Sub(f.reading):
		return fmt.Errorf("the sum lags by %v, the last interval was %v", real-f.sum, now.Sub(f.reading))
	case f.calls > maxSteps || !forced && f.calls > 2*f.interval:
		return fmt.Errorf("%d calls between readings, %d before that", f.calls, f.interval)
	}
	f.reading, f.interval, f.calls = now, f.calls, 0
	return nil
}

func TestPassedFollowsTime(t *testing.T) {
	check(t, bursts(), func(bursts []burst) error {
		var f follower
		for _, b := range bursts {
			for range b.calls {
				if err := f.passed(); err != nil {
					return err
				}
				time.Sleep(b.pause)
			}
			switch b.then {
			case windUp:
				f.timer.WindUp()
			case reset:
				f = follower{timer: f.timer}
				f.timer.Reset()
			}
		}
		return nil
	})
}

// TestRareCallsAreExact: if calls are a millisecond apart, each result is exact.
func TestRareCallsAreExact(t *testing.T) {
	check(t, pauses(), func(pause time.Duration) error {
		var timer PeriodicTimer
		timer.Passed()
		for i := range 100 {
			d := period + pause*time.Duration(i%3)
			time.Sleep(d)
			if passed := timer.Passed(); passed != d {
				return fmt.Errorf("call %d: got %v, want %v", i, passed, d)
			}
		}
		return nil
	})
}

// TestRegularCallsAreExact: when the interval has its full length, results are exact.
// Rounding loses no time.
func TestRegularCallsAreExact(t *testing.T) {
	check(t, pauses(), func(pause time.Duration) error {
		var timer PeriodicTimer
		for range 4 * maxSteps {
			timer.Passed()
			time.Sleep(pause)
		}
		for i := range 4 * maxSteps {
			if passed := timer.Passed(); passed != pause {
				return fmt.Errorf("call %d: got %v, want %v", i, passed, pause)
			}
			time.Sleep(pause)
		}
		return nil
	})
}

// TestPauseIsReturnedOnce: a pause is returned once and makes no other result larger.
func TestPauseIsReturnedOnce(t *testing.T) {
	const pause, often = time.Hour, 10 * time.Nanosecond
	err := virtually(t, func() error {
		var timer PeriodicTimer
		large := 0
		for i := range 2000 {
			if i == 1000 {
				time.Sleep(pause)
			}
			time.Sleep(often)
			switch passed := timer.Passed(); {
			case passed >= pause:
				large++
			case passed > 2*maxSteps*often:
				return fmt.Errorf("call %d: %v", i, passed)
			}
		}
		if large != 1 {
			return fmt.Errorf("the pause was returned %d times", large)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestClockThatRunsBackwards: a clock that runs backwards counts as standing still.
func TestClockThatRunsBackwards(t *testing.T) {
	var timer PeriodicTimer
	var sum time.Duration
	for _, reading := range []time.Duration{100, 130, 50, 130, 131} {
		timer.WindUp()
		passed := timer.windUp(reading)
		if passed < 0 {
			t.Errorf("got %v at reading %v", passed, reading)
		}
		sum += passed
	}
	if sum != 31 {
		t.Errorf("got %v from 100 to 131", sum)
	}
}

// TestCallsAllocateNothing includes the calls that read the clock.
func TestCallsAllocateNothing(t *testing.T) {
	var timer PeriodicTimer
	var pairs StartFinishTimer
	var clock PeriodicClock
	waiting := NewWaitingTimer(time.Hour)
	if allocs := testing.AllocsPerRun(10, func() {
		for range 2 * maxSteps {
			duration += timer.Passed()
			pairs.Start()
			pairs.Finish()
			moment, over = clock.Now(), waiting.Check()
		}
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}
