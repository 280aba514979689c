package clock

import "time"

// PeriodicClock returns the approximate time of day. The zero value is ready to use. It
// is not safe for concurrent use.
type PeriodicClock struct {
	time  time.Time     // at the last reading
	timer PeriodicTimer // decides when to read the clock
}

// Now returns the result of time.Now at the last reading of the clock. At least one of 64
// calls reads it. If calls keep their pace, the result is less than a millisecond old.
// Like that of time.Now, the result contains a monotonic time, which never runs
// backwards, and a wall time, which changes when the system's time is set.
//
// Now does not extrapolate from the last reading. The last reading is nearer to the real
// time than the sum of a PeriodicTimer, and is never ahead of it.
func (c *PeriodicClock) Now() time.Time {
	if c.timer.left == 0 {
		c.read()
	} else {
		c.timer.left--
	}
	return c.time
}

// WindUp makes the next call of Now read the clock. Call it after each pause.
func (c *PeriodicClock) WindUp() { c.timer.WindUp() }

func (c *PeriodicClock) read() {
	c.time = time.Now()
	c.timer.windUp(c.time.Sub(epoch))
}
