// Package patient has timers that judge others: a call, a start or a process. They do not
// count the time in which their own process was stopped, because the others may have been
// stopped too, and no other timer of the process ran. SIGSTOP, a paused virtual machine and a
// computer that sleeps stop a process.
//
// A timer reads the clock several times during its timeout. A late reading shows a pause.
package patient

import (
	"sync"
	"time"
)

// Checks is how often the clock is read during a timeout. A pause is detected if it is longer
// than timeout/Checks.
const Checks = 8

// Countdown is the part of a timer that reads no clock and starts no goroutine. Times are
// durations since any moment.
type Countdown struct {
	left time.Duration // at the next check, if it is on time
	step time.Duration
	next time.Duration // time of the next check
}

// Start begins the timeout and returns the time of the first check.
func (c *Countdown) Start(now, timeout time.Duration) (check time.Duration) {
	c.left, c.step = timeout, max(timeout/Checks, time.Millisecond)
	return c.plan(now)
}

func (c *Countdown) plan(now time.Duration) (check time.Duration) {
	part := min(c.step, c.left)
	c.left -= part
	c.next = now + part
	return c.next
}

// Check reports whether the timeout has passed. If not, it returns the time of the next check.
func (c *Countdown) Check(now time.Duration) (over bool, check time.Duration) {
	late := now - c.next
	if late < 0 {
		return false, c.next
	}
	if late <= c.step {
		c.left -= late
	}
	if c.left <= 0 {
		return true, 0
	}
	return false, c.plan(now)
}

// Left is the time until the timeout has passed.
func (c *Countdown) Left(now time.Duration) time.Duration {
	return c.left + max(c.next-now, 0)
}

// Timer calls a function after a timeout. Its methods may be called from any goroutine.
type Timer struct {
	began time.Time

	mu        sync.Mutex
	countdown Countdown
	timer     *time.Timer
	done      bool // Stop was called, or the timeout has passed
}

// AfterFunc calls f on its own goroutine after the timeout.
func AfterFunc(timeout time.Duration, f func()) *Timer {
	t := &Timer{began: time.Now()}
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.countdown.Start(0, timeout)
	t.timer = time.AfterFunc(first, func() {
		if t.check() {
			f()
		}
	})
	return t
}

// check reports whether the timeout has passed now.
func (t *Timer) check() (over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return false
	}
	now := time.Since(t.began)
	over, next := t.countdown.Check(now)
	if t.done = over; !over {
		t.timer.Reset(next - now)
	}
	return over
}

// Stop prevents the call. It returns false if the timeout has passed or Stop was called before.
func (t *Timer) Stop() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	stopped := !t.done
	t.done = true
	t.timer.Stop()
	return stopped
}

// Left is the time until the call, at least 0.
func (t *Timer) Left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.countdown.Left(time.Since(t.began))
}

// Wait waits until done is closed, and returns false if the timeout passes before.
func Wait(timeout time.Duration, done <-chan struct{}) bool {
	late := make(chan struct{})
	defer AfterFunc(timeout, func() { close(late) }).Stop()
	select {
	case <-done:
		return true
	case <-late:
		return false
	}
}
