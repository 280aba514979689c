package piper

import (
	"context"

	"github.com/topogen/topogen/runtime/internal/alive"
	"github.com/topogen/topogen/runtime/topo"
)

// serveContext is the context of u's Serve.
func (p *Pool) serveContext(u *Unit) context.Context {
	w := u.watch()
	if w == nil {
		return holding(u, p.serveCtx)
	}
	ctx, cancel := context.WithCancel(holding(u, p.serveCtx))
	w.cancelServe.Store(&cancel)
	if p.supervision.unansweredStop(w) != 0 { // the stop was ordered before cancel existed
		cancel()
	}
	if w.position != nil {
		ctx = alive.With(ctx, w.position)
	}
	return ctx
}

// served publishes the messages that Serve has sent, and waits while a queue is full.
// It runs on the goroutine of Serve, which is also the goroutine of the unit's worker.
func (p *Pool) served(o *Out) {
	u := o.unit
	if p.stepper != nil {
		o.publish(p.stepper.worker)
		o.settle()
		p.stepper.yield(u)
		return
	}
	w := u.worker.Load()
	o.publish(w)
	o.settle()
	if !w.inbox.empty() {
		w.readNotes() // there may be a command to stop, or a link to release
	}
	for p.serveState() == nil && !u.watch().mustStop() && (u.paused() || u.proc.group.isFull()) {
		if u.proc.group.isFull() {
			awaitRoom(u)
		}
		if w.inbox.empty() && (u.paused() || u.awaitsRoom) {
			w.parkServing()
		}
		w.readNotes()
	}
}

// serveState returns the error for a send of Serve if the topology stops, or nil.
func (p *Pool) serveState() error {
	if p.stopping.Load() || p.ended.Load() {
		return topo.ErrStopping
	}
	return nil
}
