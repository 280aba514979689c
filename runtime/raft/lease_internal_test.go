package raft

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/topogen/topogen/runtime/fsm"
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

// TestTheShortestLeaseCounts: a lease is as short as the shortest lease that a member has sent.
// The leader logs a difference once.
func TestTheShortestLeaseCounts(t *testing.T) {
	var logged []string
	c := &Core{members: members{1: {Name: "n1"}, 2: {Name: "n2"}, 3: {Name: "n3"}}}
	c.config.LeaseTime = 4 * time.Second
	c.config.Log = func(_ LogLevel, text string) { logged = append(logged, text) }
	for _, o := range []struct {
		id    uint64
		lease time.Duration
		want  time.Duration
		logs  int // so far
	}{
		{2, unknownLease, 4 * time.Second, 0},
		{2, 4 * time.Second, 4 * time.Second, 0},
		{3, 9 * time.Second, 4 * time.Second, 1},
		{2, time.Second, time.Second, 2},
		{2, time.Second, time.Second, 2},
		{2, unknownLease, time.Second, 2},
		{2, 0, 0, 3},
		{2, 4 * time.Second, 4 * time.Second, 3},
	} {
		if c.noteLease(o.id, o.lease); c.leaseTime() != o.want || len(logged) != o.logs {
			t.Errorf("after %v of n%d, the lease takes %v, want %v; logged %q, want %d lines", o.lease, o.id, c.leaseTime(), o.want, logged, o.logs)
		}
	}
	c.noteLease(2, 0)
	if delete(c.members, 2); c.leaseTime() != 4*time.Second {
		t.Errorf("after the removal of n2 the lease takes %v", c.leaseTime())
	}
	if !strings.Contains(logged[1], "of n2 differs") {
		t.Errorf("logged %q", logged[1])
	}
}

// TestTicksFollowTheMonotonicClock: the time of the next tick follows from the monotonic clock since the
// start of the node. A clock on the wall that was set since then has no effect.
func TestTicksFollowTheMonotonicClock(t *testing.T) {
	const tick, jump = time.Hour, 20 * time.Minute
	n := &Node{began: time.Now()}
	n.config.Tick, n.config.Core.Name = tick, "n1"
	wall := (*uint64)(unsafe.Pointer(&n.began)) // the first field of a time.Time; bits 30 to 62 are seconds
	*wall -= uint64(jump/time.Second) << 30     // as if the clock had been set forward by jump since the start
	want := untilTick(n.began.UnixNano(), MemberID("n1"), tick)
	got := n.untilTick()
	if early := (want - got + tick) % tick; early > time.Minute { // the time that the test has taken
		t.Errorf("the next tick is in %v, want %v", got, want)
	}
}

// idleWaiter is a read that does nothing.
type idleWaiter struct{}

func (idleWaiter) Done(fsm.Applied) {}

// TestAReadWithALeaseWaits: a read with a lease waits until everything that was committed when it
// began is applied, because an earlier leader may have acknowledged it.
func TestAReadWithALeaseWaits(t *testing.T) {
	var r reads
	r.add(idleWaiter{}, 7)
	if early := r.ready(6, nil); len(early) > 0 {
		t.Error("it reads before entry 7 is applied")
	}
	if now := r.ready(7, nil); len(now) != 1 {
		t.Errorf("%d reads when entry 7 is applied, want 1", len(now))
	}
}
