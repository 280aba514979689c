package clock

import (
	"fmt"
	"testing"
	"time"
)

// TestNowShowsNoFuture: Now is never in the future, never older than the last reading,
// and never runs backwards.
func TestNowShowsNoFuture(t *testing.T) {
	check(t, bursts(), func(bursts []burst) error {
		var clock PeriodicClock
		var before time.Time
		calls, exact := 0, true
		for _, b := range bursts {
			for range b.calls {
				real, now := time.Now(), clock.Now()
				switch {
				case now.After(real):
					return fmt.Errorf("got %v at %v", now, real)
				case now.Before(before):
					return fmt.Errorf("got %v after %v", now, before)
				case exact && !now.Equal(real):
					return fmt.Errorf("got %v at %v, in the first call or after WindUp", now, real)
				case now.Equal(real):
					calls = 0
				default:
					calls++
				}
				if calls >= maxSteps {
					return fmt.Errorf("%v late for %d calls", real.Sub(now), calls)
				}
				before, exact = now, false
				time.Sleep(b.pause)
			}
			if b.then == windUp {
				clock.WindUp()
				exact = true
			}
		}
		return nil
	})
}

// TestNowIsFresh: Now is recent if calls keep their pace.
func TestNowIsFresh(t *testing.T) {
	check(t, pauses(), func(pause time.Duration) error {
		var clock PeriodicClock
		for i := range 500 {
			if real, now := time.Now(), clock.Now(); real.Sub(now) >= period {
				return fmt.Errorf("call %d: %v late", i, real.Sub(now))
			}
			time.Sleep(pause)
		}
		return nil
	})
}

// TestNowIsMonotonic: the result contains a monotonic time.
func TestNowIsMonotonic(t *testing.T) {
	var clock PeriodicClock
	for range 2 * maxSteps {
		if now := clock.Now(); now.Round(0) == now {
			t.Fatalf("%v has no monotonic time", now)
		}
	}
}
