package clock

import "time"

// PeriodicClock tells the time of day, approximately (rast.md 2.9). The zero
// value is ready to use. It is not safe for concurrent use.
type PeriodicClock struct {
	time  time.Time     // of the last reading
	timer PeriodicTimer // says when to read again
}

// Now returns what time.Now returned at the last reading of the clock, which is
// one of at most 64 calls: where these keep their pace, less than a millisecond
// ago. As that of time.Now the result holds a monotonic time, by which it never
// runs backwards, and a wall time, which follows when the system's is set.
//
// It does not extrapolate, as the text does: the last reading is nearer to the
// time than what PeriodicTimer adds up to, and is not ahead of it either.
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
