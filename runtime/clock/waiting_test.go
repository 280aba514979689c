package clock

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWaitingIsNeverEarly: Check is never early, fewer than 64 calls late, and stays true
// until Reset.
func TestWaitingIsNeverEarly(t *testing.T) {
	type input struct {
		period time.Duration
		bursts []burst
	}
	inputs := rapid.Custom(func(t *rapid.T) input { return input{pauses().Draw(t, "period"), bursts().Draw(t, "bursts")} })
	check(t, inputs, func(in input) error {
		timer := NewWaitingTimer(in.period)
		begun, late, reported := time.Now(), 0, false
		for _, b := range in.bursts {
			for range b.calls {
				if b.then == windUp {
					timer.WindUp()
				}
				due, over := timer.Check(), time.Since(begun) > in.period
				if over && !due {
					late++
				}
				switch {
				case due && !over:
					return fmt.Errorf("true after %v of %v", time.Since(begun), in.period)
				case reported && !due:
					return fmt.Errorf("true, and then false")
				case over && !due && (late >= maxSteps || b.then == windUp):
					return fmt.Errorf("%d calls late, after %v of %v", late, time.Since(begun), in.period)
				}
				reported = due
				time.Sleep(b.pause)
			}
			if b.then == reset {
				timer.Reset()
				begun, late, reported = time.Now(), 0, false
			}
		}
		return nil
	})
}

func TestWaitingIsExactWhenCallsAreRare(t *testing.T) {
	err := virtually(t, func() error {
		const n = 5
		timer := NewWaitingTimer(n * period)
		for round := range 3 {
			for i := range n + 1 {
				if timer.Check() {
					return fmt.Errorf("round %d: true after %v of %v", round, time.Duration(i)*period, n*period)
				}
				time.Sleep(period)
			}
			for range 3 {
				if !timer.Check() {
					return fmt.Errorf("round %d: still false", round)
				}
			}
			timer.Reset()
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
