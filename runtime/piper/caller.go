package piper

import (
	"sync/atomic"
	"time"
)

// caller calls functions one after the other on a goroutine of its own. When a
// function does not return in time, caller leaves that goroutine behind and goes on
// with another. A function that ends its goroutine (runtime.Goexit) has returned.
type caller struct {
	late <-chan struct{} // closed: call stops waiting for f; nil: never
	jobs chan func()     // nil where there is no goroutine
}

// call calls f and waits until it has returned, for at most timeout (0: as long as
// it takes). Where f returns later than that, after is called.
func (c *caller) call(timeout time.Duration, f, after func()) (returned bool) {
	if c.jobs == nil {
		c.jobs = make(chan func())
		go work(c.jobs)
	}
	var over atomic.Bool // f has returned, or the caller has stopped waiting
	done, exits := make(chan struct{}), true
	c.jobs <- func() {
		defer func() {
			if over.CompareAndSwap(false, true) {
				close(done)
			} else {
				after()
			}
		}()
		f()
		exits = false
	}
	var timer <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-done:
	case <-timer:
	case <-c.late:
	}
	if over.CompareAndSwap(false, true) {
		c.end()
		return false
	}
	<-done
	if exits {
		c.jobs = nil
	}
	return true
}

// isLate reports whether late is closed.
func (c *caller) isLate() bool {
	select {
	case <-c.late:
		return true
	default:
		return false
	}
}

// end ends the goroutine, once it has returned from the function that it calls.
func (c *caller) end() {
	if c.jobs != nil {
		close(c.jobs)
		c.jobs = nil
	}
}

func work(jobs <-chan func()) {
	for job := range jobs {
		job()
	}
}
