package oracle

import "math/rand/v2"

// The clocks at the beginning of a sequence. They differ, so that a comparison with the
// wrong clock is wrong by decades. In debug mode both are the same.
const (
	beginWall = 1_800_000_000_000
	beginRun  = 5_000
)

// clocks are the clocks of the engine and of its computer. Wall never goes back: if the
// clock of the computer was set back, wall advances at half speed until that clock has
// caught up. Run advances only while the process runs.
type clocks struct {
	wall, run int64
	computer  int64
	half      int64 // a millisecond that wall has not advanced yet
	debug     bool  // requests say what time it is, for both clocks
}

func newClocks(debug bool) *clocks {
	c := &clocks{wall: beginWall, run: beginRun, computer: beginWall, debug: debug}
	if debug {
		c.run = c.wall
	}
	return c
}

// advance lets time pass while the process runs.
func (c *clocks) advance(ms int64) {
	c.computer += ms
	c.run += ms
	switch {
	case c.debug:
		c.wall += ms
	case c.computer >= c.wall:
		c.wall, c.half = c.computer, 0
	default:
		c.wall += (ms + c.half) / 2
		c.half = (ms + c.half) % 2
	}
}

// down lets time pass while the process does not run.
func (c *clocks) down(ms int64) {
	run := c.run
	c.advance(ms)
	if !c.debug {
		c.run = run
	}
}

// jump sets the clock of the computer forward or back.
func (c *clocks) jump(ms int64) {
	if c.debug {
		return
	}
	c.computer += ms
	c.advance(0)
}

// pass lets a random time pass: often none, often until just before, at or after one of
// the next timers, sometimes for long.
func (c *clocks) pass(r *rand.Rand, longest int64, timers []timer) {
	switch n := r.IntN(100); {
	case n < 60:
	case n < 80 && len(timers) > 0:
		wait := min(c.until(pick(r, timers...)), c.until(pick(r, timers...))) - 1 + r.Int64N(3)
		if wait <= longest {
			c.advance(max(0, wait))
		}
	case n < 94:
		c.advance(r.Int64N(20))
	case n < 96:
		c.advance(r.Int64N(longest))
	case n < 98:
		c.down(r.Int64N(longest))
	default:
		c.jump(r.Int64N(2*longest) - longest)
	}
}

// until returns the time until a timer, which is negative if it is due.
func (c *clocks) until(t timer) int64 {
	if t.run {
		return t.at - c.run
	}
	return t.at - c.wall
}
