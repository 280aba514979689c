package clock

import "time"

const (
	period   = time.Millisecond // between two readings if calls keep their pace: a reading costs a ten-thousandth of it
	maxSteps = 64               // between two readings: with more, extrapolating would cost more than reading
)

// epoch is the zero time of readings.
var epoch = time.Now()

// now reads the monotonic clock.
func now() time.Duration { return time.Since(epoch) }

// PeriodicTimer returns the time since its last call. The zero value is ready to use. It
// is not safe for concurrent use.
//
// The sum of all results is never more than the time since the first call. At each
// reading of the clock, which at least one of 64 calls does, the sum reaches the previous
// reading.
type PeriodicTimer struct {
	begun       bool
	steps       int64         // calls between the last reading and the next; 0 after WindUp
	left        int64         // calls before the next reading
	step        time.Duration // result of each of these calls
	lastReading time.Duration // all time up to it was returned, or will be returned by the calls that are left
}

// Passed returns approximately the time since the last call of Passed, and 0 in the first
// call. The result is never negative. A pause is returned once, by the next call that
// reads the clock.
func (t *PeriodicTimer) Passed() time.Duration {
	if t.left == 0 {
		return t.read()
	}
	t.left--
	return t.step
}

// WindUp makes the next call of Passed read the clock and return all time that was not
// returned yet. It is cheap: call it after each pause.
func (t *PeriodicTimer) WindUp() {
	t.lastReading -= t.lag()
	t.left, t.steps = 0, 0
}

// Reset makes the timer new: the next call of Passed is its first.
func (t *PeriodicTimer) Reset() { *t = PeriodicTimer{} }

func (t *PeriodicTimer) read() time.Duration { return t.windUp(now()) }

// windUp uses a reading of the clock and returns the result of Passed. It distributes the
// time since the last reading over the calls up to the next one. If there will be fewer
// calls than since the last reading, each gets the share that it would get with as many
// calls, and windUp returns the rest at once. A pause therefore does not make later
// results larger.
func (t *PeriodicTimer) windUp(now time.Duration) time.Duration {
	if !t.begun {
		t.begun, t.lastReading = true, now
	}
	passed := max(now-t.lastReading, 0) // if the clock runs backwards, no time has passed
	steps := max(1, min(2*t.steps, maxSteps, callsPerPeriod(t.steps, passed)))
	t.step = passed / time.Duration(max(steps, t.steps))
	t.steps, t.left = steps, steps-1
	t.lastReading += passed
	return passed - t.lag()
}

// lag is the difference between the last reading and the sum of all results.
func (t *PeriodicTimer) lag() time.Duration { return t.step * time.Duration(t.left) }

// callsPerPeriod returns how many calls fit into a period if they come as fast as the last
// ones.
func callsPerPeriod(calls int64, passed time.Duration) int64 {
	if passed <= 0 {
		return maxSteps
	}
	return calls * int64(period) / int64(passed)
}
