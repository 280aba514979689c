package clock

import "time"

const (
	period   = time.Millisecond // from one reading to the next where calls keep their pace: a reading costs a ten-thousandth of it
	maxSteps = 64               // calls from one reading to the next: beyond it extrapolating costs more than reading
)

// epoch is what readings count from.
var epoch = time.Now()

// now reads the monotonic clock.
func now() time.Duration { return time.Since(epoch) }

// PeriodicTimer tells the time since its last call (rast.md 2.6). The zero value
// is ready to use. It is not safe for concurrent use.
//
// All results together are never more than the time since the first call. At
// each reading of the clock, one in at most 64 calls, they reach the reading
// before.
type PeriodicTimer struct {
	begun       bool
	steps       int64         // calls from the last reading to the next; 0 after WindUp
	left        int64         // of them, those still to come before the next reading
	step        time.Duration // what each of these returns
	lastReading time.Duration // the last reading: up to it all time was returned, or is by the calls that are left
}

// Passed returns approximately the time since the last call of Passed, and 0 at
// the first call. The result is never negative. A pause is returned once, by the
// next call that reads the clock.
func (t *PeriodicTimer) Passed() time.Duration {
	if t.left == 0 {
		return t.read()
	}
	t.left--
	return t.step
}

// WindUp makes the next call of Passed read the clock and return all time that
// was not returned before. It is cheap: call it after each pause.
func (t *PeriodicTimer) WindUp() {
	t.lastReading -= t.lag()
	t.left, t.steps = 0, 0
}

// Reset makes the timer new: the next call of Passed is its first.
func (t *PeriodicTimer) Reset() { *t = PeriodicTimer{} }

func (t *PeriodicTimer) read() time.Duration { return t.windUp(now()) }

// windUp takes a reading of the clock and returns what Passed does. It spreads
// the time since the last reading over the calls up to the next one. Where these
// are fewer than the last ones, each gets as much as if they were not, and the
// rest is returned at once: a pause does not make later results larger.
func (t *PeriodicTimer) windUp(now time.Duration) time.Duration {
	if !t.begun {
		t.begun, t.lastReading = true, now
	}
	passed := max(now-t.lastReading, 0) // a clock that runs backwards stands still
	steps := max(1, min(2*t.steps, maxSteps, within(t.steps, passed)))
	t.step = passed / time.Duration(max(steps, t.steps))
	t.steps, t.left = steps, steps-1
	t.lastReading += passed
	return passed - t.lag()
}

// lag is how far all results are behind the last reading.
func (t *PeriodicTimer) lag() time.Duration { return t.step * time.Duration(t.left) }

// within is how many calls fit into a period at the pace of the last ones.
func within(calls int64, passed time.Duration) int64 {
	if passed <= 0 {
		return maxSteps
	}
	return calls * int64(period) / int64(passed)
}
