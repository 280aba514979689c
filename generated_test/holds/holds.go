// Package holds has processors that delay jobs with topo.Hold. They release a job on a timer,
// on a goroutine, or never.
package holds

import (
	"context"
	"errors"
	"os"
	"reflect"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// Job is work for later. How says how it is released.
type Job struct {
	N   int
	How string // "tick", "goroutine", "never", "retry", "exit", "late"
}

// Done reports a finished job, with its attempt and process.
type Done struct {
	N, Attempt, Process int
}

// HoldTime is how long a job is held that a goroutine releases.
const HoldTime = 50 * time.Millisecond

// Limiter does one job at each tick.
type Limiter struct {
	jobs     []Done
	releases []func()
	first    func() // releases the hold of Init
}

// NewLimiter makes a Limiter.
func NewLimiter() *Limiter { return new(Limiter) }

// Init holds until the first tick or job.
func (l *Limiter) Init(ctx context.Context) error {
	l.first = topo.Hold(ctx)
	return nil
}

var errRetry = errors.New("not yet")

// ReceiveJob keeps a job for a tick.
func (l *Limiter) ReceiveJob(ctx context.Context, j Job, out outs) error {
	switch j.How {
	case "late":
		hidden := reflect.ValueOf(out) // hides the sender from the check of handlers
		for i := range 10 {            // a late send during another call is not detected, so try several times
			time.AfterFunc(time.Duration(20+3*i)*time.Millisecond, func() { hidden.Interface().(outs).SendDone(Done{N: j.N}) })
		}
		release := topo.Hold(ctx)
		time.AfterFunc(200*time.Millisecond, release)
		return nil
	case "retry":
		if topo.Attempt(ctx) < 3 {
			return errRetry
		}
	case "goroutine":
		release := topo.Hold(ctx)
		time.AfterFunc(HoldTime, release)
		return nil
	case "never":
		topo.Hold(ctx)
		return nil
	case "exit":
		if topo.Attempt(ctx) == 1 {
			os.Exit(3)
		}
	}
	l.jobs = append(l.jobs, Done{N: j.N, Attempt: topo.Attempt(ctx), Process: os.Getpid()})
	l.releases = append(l.releases, topo.Hold(ctx))
	return nil
}

// outs are the senders of near and far.
type outs interface{ SendDone(Done) }

// ReceiveTick does one job.
func (l *Limiter) ReceiveTick(_ topo.Tick, out outs) {
	l.first()
	if len(l.jobs) > 0 {
		out.SendDone(l.jobs[0])
		l.releases[0]()
		l.jobs, l.releases = l.jobs[1:], l.releases[1:]
	}
}

// Sink notes the finished jobs.
type Sink struct{ Done []Done }

// NewSink makes a Sink.
func NewSink() *Sink { return new(Sink) }

// ReceiveDone notes a finished job.
func (s *Sink) ReceiveDone(d Done) { s.Done = append(s.Done, d) }
