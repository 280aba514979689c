package piper

import (
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/patient"
)

// executor calls functions one after the other on a goroutine of its own. If a function
// does not return in time, executor abandons that goroutine and continues with a new one.
// A function that ends its goroutine (runtime.Goexit) counts as returned.
type executor struct {
	late <-chan struct{} // when closed, run stops waiting; may be nil
	jobs chan func()     // nil if there is no goroutine
}

// run calls f and waits until it returns, for at most timeout (0 means no limit). If f
// returns later, after is called.
func (c *executor) run(timeout time.Duration, f, after func()) (returned bool) {
	if c.jobs == nil {
		c.jobs = make(chan func())
		go work(c.jobs)
	}
	var over atomic.Bool // f has returned, or run has stopped waiting
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
	var expired chan struct{}
	if timeout > 0 {
		expired = make(chan struct{})
		defer patient.AfterFunc(timeout, func() { close(expired) }).Stop()
	}
	select {
	case <-done:
	case <-expired:
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
func (c *executor) isLate() bool {
	select {
	case <-c.late:
		return true
	default:
		return false
	}
}

// end ends the goroutine once it has returned from its current function.
func (c *executor) end() {
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
