package shard

import (
	"context"

	"github.com/topogen/topogen/runtime/clock"
)

// worker is the state of one worker. It is padded so that no two workers share a cache
// line.
type worker struct {
	transfer
	run   *run
	ctx   context.Context
	live  []int // its shards that are not done
	timer clock.WaitingTimer
	wake  chan struct{} // receives a token when the epoch may have changed
	err   error         // the error that ended the worker

	_ [64]byte
}

// work runs until the context ends or a call fails.
func (w *worker) work() error {
	for w.ctx.Err() == nil {
		if err := w.switchConfig(); err != nil {
			return err
		}
		if err := w.round(); err != nil {
			return err
		}
		if len(w.live) > 0 && !w.timer.Check() {
			continue
		}
		if w.run.pages.Promise(w.worker, w.epoch) {
			if err := w.reshard(); err != nil {
				return err
			}
		}
		if len(w.live) == 0 {
			w.sleep()
		}
	}
	return nil
}

// switchConfig switches to the current configuration, if it has changed.
func (w *worker) switchConfig() error {
	for {
		switch w.step(w.run.pages, w.run.locks) {
		case stepNone:
			return nil
		case stepBlocked:
			select {
			case <-w.run.locks[w.nextShard()]:
				w.acquiredNext()
			case <-w.ctx.Done():
				return nil // round does nothing then
			}
		case stepDone:
			w.live = w.live[:0]
			for _, shard := range w.shards {
				if !w.run.done[shard] {
					w.live = append(w.live, shard)
				}
			}
			w.timer.Reset()
			return w.failed(w.try("OnSwitch", none, func() error {
				w.run.controller.OnSwitch(w.worker, w.shards)
				return nil
			}))
		}
	}
}

// round calls PreProcess once, and ProcessShard for each shard that is not done.
func (w *worker) round() error {
	if len(w.live) == 0 || w.ctx.Err() != nil {
		return nil
	}
	mayUpdate := w.run.pages.MayUpdate(w.worker, w.epoch)
	if err := w.failed(w.try("PreProcess", none, func() error {
		return w.run.controller.PreProcess(w.ctx, w.worker, mayUpdate)
	})); err != nil {
		return err
	}
	live := w.live[:0]
	for _, shard := range w.live {
		if w.ctx.Err() != nil {
			return nil
		}
		e := w.try("ProcessShard", shard, func() error {
			return w.run.controller.ProcessShard(w.ctx, shard, mayUpdate)
		})
		if e != nil && e.signal == Done {
			w.run.finish(shard)
			continue
		}
		if err := w.failed(e); err != nil {
			return err
		}
		live = append(live, shard)
	}
	w.live = live
	return nil
}

// reshard makes a new configuration current, unless another worker is doing so.
func (w *worker) reshard() error {
	switched, err := w.run.pages.Reshard(w.decide)
	if switched {
		w.run.wakeWorkers()
	}
	return err
}

// decide calls Resharding. If that fails and OnError ignores the failure, decide returns
// the old configuration as the next one. This starts a new epoch, in which there are no
// promises, so costs are measured again.
func (w *worker) decide(old [][]int) (next [][]int, err error) {
	p := w.run.pages
	e := w.try("Resharding", none, func() (err error) {
		if next, err = w.run.controller.Resharding(old); err != nil {
			return err
		}
		return check(next, p.Workers(), p.Shards())
	})
	if e == nil {
		return next, nil
	}
	return p.Config(w.epoch), w.failed(e)
}

// sleep waits for a new configuration.
func (w *worker) sleep() {
	select {
	case <-w.wake:
	case <-w.ctx.Done():
	}
}

// try calls a method of the controller and returns its error or panic.
func (w *worker) try(method string, shard int, call func() error) *Error {
	return try(w.ctx, &w.err, method, w.worker, shard, call)
}

// failed returns the error with which a failure ends Run, or nil.
func (w *worker) failed(e *Error) (end error) {
	if e == nil || e.signal != nil && e.signal == w.ctx.Err() {
		return nil // the call returned because the context has ended, as required
	}
	if e := w.try("OnError", e.Shard, func() error { end = w.run.onError(e); return nil }); e != nil {
		return e
	}
	return end
}
