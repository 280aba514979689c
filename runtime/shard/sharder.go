package shard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/clock"
	"github.com/topogen/topogen/runtime/internal/bug"
)

// intervalDefault is time enough for costs to mean something, and far more than
// a decision takes (rast.md 2.12, time_between_reshards).
const intervalDefault = time.Second

// Sharder runs the shards of a controller on workers, and divides them anew from
// time to time. Only Controller need be set, and not even that where the zero
// value of C is ready to use. A Sharder holds no state of a run.
type Sharder[C Controller] struct {
	Controller C
	// Workers is the number of workers; 0: GOMAXPROCS. There are never more than
	// MaxWorkers of the controller.
	Workers int
	// Interval is the time from when a worker begins with a configuration until
	// it is ready for the next; 0: one second, negative: never. A longer one makes
	// costs more certain, a shorter one follows them faster.
	Interval time.Duration
	// OnError is told of each error and panic of the controller, by several
	// workers at a time, and says what becomes of Run: with an error Run ends and
	// returns it, with nil the worker goes on with its next shard, and a
	// Resharding that failed leaves things as they are for another interval. The
	// default is to end Run: an error that is passed over is met again in the next
	// round, and a panic may leave the data of a shard half changed. Where OnError
	// itself panics, Run ends with that.
	OnError func(*Error) error
}

// Run works until all shards are done or the context ends, and returns nil, or
// until an error ends it. It returns when all workers have: none of them is in
// a method of the controller any more.
func (s *Sharder[C]) Run(ctx context.Context) error {
	if s.Workers < 0 {
		return fmt.Errorf("shard: there cannot be %d workers", s.Workers)
	}
	workers := s.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	pages, err := s.begin(ctx, workers)
	if err != nil {
		return err
	}
	interval := s.Interval
	switch {
	case interval == 0:
		interval = intervalDefault
	case interval < 0:
		interval = math.MaxInt64
	}
	return newRun(s.Controller, pages, interval, s.OnError).wait(ctx)
}

// begin asks the controller for the configuration to begin with.
func (s *Sharder[C]) begin(ctx context.Context, workers int) (pages *Pages, ended error) {
	if e := try(ctx, &ended, "MaxWorkers", none, none, func() error {
		workers = max(1, min(workers, s.Controller.MaxWorkers(), workersMax))
		return nil
	}); e != nil {
		return nil, e
	}
	if e := try(ctx, &ended, "InitialSharding", none, none, func() error {
		first, err := s.Controller.InitialSharding(workers)
		if err == nil {
			pages, err = NewPages(workers, first)
		}
		return err
	}); e != nil {
		return nil, e
	}
	return pages, nil
}

// run is one run of a sharder.
type run struct {
	controller Controller
	onError    func(*Error) error
	pages      *Pages
	locks      locks
	workers    []worker
	done       []bool       // by shard; who has the shard touches it
	left       atomic.Int64 // shards that are not done
	end        context.CancelFunc
}

func newRun(c Controller, p *Pages, interval time.Duration, onError func(*Error) error) *run {
	if onError == nil {
		onError = func(e *Error) error { return e }
	}
	r := &run{
		controller: c, onError: onError, pages: p, locks: newLocks(p.Shards()),
		workers: make([]worker, p.Workers()), done: make([]bool, p.Shards()),
	}
	r.left.Store(int64(p.Shards()))
	for i := range r.workers {
		w := &r.workers[i]
		w.run, w.worker, w.wake, w.timer = r, i, make(chan struct{}, 1), *clock.NewWaitingTimer(interval)
	}
	return r
}

// wait starts the workers and returns when they have ended, with their errors.
func (r *run) wait(ctx context.Context) error {
	if r.left.Load() == 0 {
		return nil
	}
	ctx, r.end = context.WithCancel(ctx)
	defer r.end()
	var group sync.WaitGroup
	for i := range r.workers {
		w := &r.workers[i]
		w.ctx = ctx
		group.Go(func() {
			defer r.end() // who ends ends all: the others wait for its shards
			if err := w.work(); err != nil {
				w.err = err
			}
		})
	}
	group.Wait()
	var list []error
	for i := range r.workers {
		list = append(list, r.workers[i].err)
	}
	return errors.Join(list...)
}

// finish notes that a shard is done; the run ends with the last one.
func (r *run) finish(shard int) {
	r.done[shard] = true
	if r.left.Add(-1) == 0 {
		r.end()
	}
}

// wakeWorkers wakes the workers that sleep: there is another configuration.
func (r *run) wakeWorkers() {
	if bug.On(bug.SleptThrough) {
		return
	}
	for i := range r.workers {
		select {
		case r.workers[i].wake <- struct{}{}:
		default: // it is awake, or woken already, and will see
		}
	}
}
