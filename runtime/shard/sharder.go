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
)

// intervalDefault is long enough to measure costs, and much longer than a decision takes.
const intervalDefault = time.Second

// Sharder runs the shards of a controller on workers, and changes the configuration from
// time to time. Only Controller must be set, unless the zero value of C is ready to use. A
// Sharder holds no state of a run.
type Sharder[C Controller] struct {
	Controller C
	// Workers is the number of workers; 0 means GOMAXPROCS. It is limited to MaxWorkers
	// of the controller.
	Workers int
	// Interval is the time that a worker works with a configuration before it is ready
	// for the next one; 0 means one second, a negative value means forever. A longer
	// interval measures costs more exactly, a shorter one reacts faster.
	Interval time.Duration
	// OnError is called for each error and panic of the controller, concurrently by the
	// workers. If it returns an error, Run ends and returns that error. If it returns
	// nil, the worker continues with its next shard; after a failed Resharding the
	// configuration stays for another interval. The default ends Run, because an error
	// that is ignored occurs again in the next round, and a panic may leave the data of a
	// shard half changed. If OnError itself panics, Run ends with that panic.
	OnError func(*Error) error
}

// Run works until all shards are done or the context ends, and then returns nil, or until
// an error ends it. When it returns, all workers have ended and no method of the
// controller is running.
func (s *Sharder[C]) Run(ctx context.Context) error {
	if s.Workers < 0 {
		return fmt.Errorf("shard: Workers must not be negative, got %d", s.Workers)
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

// begin calls the controller for the first configuration.
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
	done       []bool       // by shard; accessed only by the worker that has the shard
	remaining  atomic.Int64 // shards that are not done
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
	r.remaining.Store(int64(p.Shards()))
	for i := range r.workers {
		w := &r.workers[i]
		w.run, w.worker, w.wake, w.timer = r, i, make(chan struct{}, 1), *clock.NewWaitingTimer(interval)
	}
	return r
}

// wait starts the workers, waits until they have ended, and returns their errors.
func (r *run) wait(ctx context.Context) error {
	if r.remaining.Load() == 0 {
		return nil
	}
	ctx, r.end = context.WithCancel(ctx)
	defer r.end()
	var group sync.WaitGroup
	for i := range r.workers {
		w := &r.workers[i]
		w.ctx = ctx
		group.Go(func() {
			defer r.end() // if one worker ends all must end: the others may wait for its shards
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

// finish records that a shard is done. The run ends with the last one.
func (r *run) finish(shard int) {
	r.done[shard] = true
	if r.remaining.Add(-1) == 0 {
		r.end()
	}
}

// wakeWorkers wakes the workers that sleep, because there is a new configuration.
func (r *run) wakeWorkers() {
	for i := range r.workers {
		select {
		case r.workers[i].wake <- struct{}{}:
		default: // the worker is awake or will wake up
		}
	}
}
