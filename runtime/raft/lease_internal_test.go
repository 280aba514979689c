package raft

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestLeaseTime: a lease ends before a follower whose clock is almost twice as fast can vote, whenever the
// follower's loop takes its ticks. At twice the speed, there are delays with which the follower could vote.
func TestLeaseTime(t *testing.T) {
	const tick = 100 * time.Millisecond
	for _, c := range []struct {
		electionTicks int
		want          time.Duration
	}{{1, 0}, {2, 0}, {3, 50 * time.Millisecond}, {5, 150 * time.Millisecond}, {10, 400 * time.Millisecond}} {
		got := leaseTime(c.electionTicks, tick)
		if got != c.want {
			t.Errorf("with %d ticks, a lease must take %v, got %v", c.electionTicks, c.want, got)
		}
		shortest := time.Hour
		rng := rand.New(rand.NewPCG(1, 1))
		for range 1000 {
			shortest = min(shortest, timeOfTicks(c.electionTicks, tick, func() time.Duration {
				if rng.IntN(2) == 0 {
					return tick - 1
				}
				return time.Duration(rng.Int64N(int64(3 * tick)))
			}))
		}
		if shortest <= 2*got-1 {
			t.Errorf("%d ticks take %v of a follower, which must be more than twice the lease of %v", c.electionTicks, shortest, got)
		}
		if alwaysLate := timeOfTicks(c.electionTicks, tick, lateOnce(tick-1)); c.electionTicks > 1 && alwaysLate > 2*got+1 {
			t.Errorf("the lease may be longer: %d ticks take at least %v, and a lease takes %v", c.electionTicks, alwaysLate, got)
		}
	}
}

// lateOnce returns delays of which only the first one is not 0.
func lateOnce(first time.Duration) func() time.Duration {
	return func() (delay time.Duration) {
		delay, first = first, 0
		return delay
	}
}

// timeOfTicks returns the time from an answer of a node until its loop has taken some ticks. The loop answers just
// before it takes the first one. delay returns how late the loop takes the next tick.
func timeOfTicks(ticks int, tick time.Duration, delay func() time.Duration) time.Duration {
	const number = 12345
	var began, now int64
	for i := range ticks {
		now += int64(untilTick(now, number, tick) + delay())
		if i == 0 {
			began = now
		}
	}
	return time.Duration(now - began)
}
