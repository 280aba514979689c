package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// Stats are the counters of an engine since it was opened, and its present load.
type Stats struct {
	Calls       int // operations that wait for a commit
	CallBytes   int
	Busy        uint64 // operations refused with 429
	Abandoned   uint64 // operations whose caller gave up before they were carried out
	Full        uint64 // transactions refused for lack of space
	Panics      uint64 // steps that panicked: errors in this program
	Ticks       uint64 // transactions that looked for timeouts that are due
	Commits     Durations
	Operations  uint64 // in these commits
	Schedules   uint64 // promises that schedules created
	Gaps        uint64 // times that schedules skipped because they had missed too many occurrences
	Connections int
	Held        int    // execute messages that wait for a worker
	Ended       uint64 // execute messages that waited until their task had ended or had another worker

	Executes uint64 // messages that the core asked to send
	Unblocks uint64
	// Polled and Pushed count messages by what became of them.
	Polled, Pushed Deliveries
	// UnblocksDropped are unblock messages that were deleted without being delivered, because
	// their address had too many or because they were too old.
	UnblocksDropped uint64
}

// Add adds the counters of another engine. The load remains that of s.
func (s *Stats) Add(o *Stats) {
	s.Busy += o.Busy
	s.Abandoned += o.Abandoned
	s.Full += o.Full
	s.Panics += o.Panics
	s.Ticks += o.Ticks
	s.Commits.add(&o.Commits)
	s.Operations += o.Operations
	s.Schedules += o.Schedules
	s.Gaps += o.Gaps
	s.Ended += o.Ended
	s.Executes += o.Executes
	s.Unblocks += o.Unblocks
	s.Polled.add(&o.Polled)
	s.Pushed.add(&o.Pushed)
	s.UnblocksDropped += o.UnblocksDropped
}

// Deliveries count messages.
type Deliveries struct {
	Delivered uint64 // taken by a connection, or answered with a status of 200 to 299
	Failed    uint64 // attempts that failed
	Dropped   uint64 // execute messages without a place; retries send them again
}

func (d *Deliveries) add(o *Deliveries) {
	d.Delivered += o.Delivered
	d.Failed += o.Failed
	d.Dropped += o.Dropped
}

// DurationBounds are the upper bounds of the buckets of [Durations], in seconds.
var DurationBounds = [...]float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}

// Durations is a histogram. Buckets[i] counts durations up to DurationBounds[i] that are
// above the bound before; the last one counts the rest.
type Durations struct {
	Count   uint64
	Sum     time.Duration
	Buckets [len(DurationBounds) + 1]uint64
}

func (d *Durations) add(o *Durations) {
	d.Count += o.Count
	d.Sum += o.Sum
	for i, n := range o.Buckets {
		d.Buckets[i] += n
	}
}

// durations is a histogram that several goroutines use.
type durations struct {
	mu sync.Mutex
	d  Durations
}

func (d *durations) add(t time.Duration) {
	i, seconds := 0, t.Seconds()
	for i < len(DurationBounds) && seconds > DurationBounds[i] {
		i++
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.d.Count++
	d.d.Sum += t
	d.d.Buckets[i]++
}

func (d *durations) get() Durations {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.d
}

// counters are the counters of [Stats].
type counters struct {
	busy, abandoned, full, panics, ticks, operations, schedules, gaps, ended atomic.Uint64
	executes, unblocks, unblocksDropped                                      atomic.Uint64
	polled, pushed                                                           deliveries
	commits                                                                  durations
}

type deliveries struct{ delivered, failed, dropped atomic.Uint64 }

func (d *deliveries) get() Deliveries {
	return Deliveries{d.delivered.Load(), d.failed.Load(), d.dropped.Load()}
}

// Stats returns the counters. The values are read one after the other.
func (e *Engine) Stats() Stats {
	c := &e.counters
	s := Stats{
		Busy: c.busy.Load(), Abandoned: c.abandoned.Load(), Full: c.full.Load(), Panics: c.panics.Load(),
		Ticks: c.ticks.Load(), Commits: c.commits.get(), Operations: c.operations.Load(), Schedules: c.schedules.Load(), Gaps: c.gaps.Load(), Ended: c.ended.Load(),
		Executes: c.executes.Load(), Unblocks: c.unblocks.Load(), UnblocksDropped: c.unblocksDropped.Load(),
		Polled: c.polled.get(), Pushed: c.pushed.get(),
	}
	s.Calls, s.CallBytes = e.queue.len()
	s.Connections, s.Held = e.hub.len()
	return s
}
