package pool

import "github.com/topogen/topogen/runtime/topo"

// served publishes what Serve has sent and waits while a queue is full. It runs
// on the goroutine of Serve, which is that of the unit's worker.
func (p *Pool) served(o *Out) {
	u := o.unit
	if p.stepper != nil {
		o.publish(p.stepper.worker)
		o.settle()
		p.stepper.yield(u)
		return
	}
	w := u.home.Load()
	o.publish(w)
	o.settle()
	for p.serveState() == nil && (u.paused() || u.proc.group.isFull()) {
		if u.proc.group.isFull() {
			w.gateUp(u)
		}
		if w.inbox.empty() && (u.paused() || u.waitsGate) {
			w.parkServing()
		}
		w.readNotes()
	}
}

// serveState is what a send of Serve meets: an error once nothing more is
// accepted.
func (p *Pool) serveState() error {
	if p.stopping.Load() || p.ended.Load() {
		return topo.ErrStopping
	}
	return nil
}

// parkServing is park for a worker whose goroutine is in a send of Serve: it
// also ends when the topology stops.
func (w *Worker) parkServing() {
	w.parked.Store(true)
	if !w.inbox.empty() || w.pool.stopping.Load() || w.pool.ended.Load() {
		if w.parked.CompareAndSwap(true, false) {
			return
		}
	}
	<-w.wake
}
