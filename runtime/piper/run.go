package piper

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/topogen/topogen/runtime/internal/alive"
	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/internal/patient"
	"github.com/topogen/topogen/runtime/topo"
)

// Run runs the topology. It returns when all processors have finished, when ctx has
// ended and the queues are drained, or when a handler has failed.
func (p *Pool) Run(ctx context.Context) error {
	if !p.started.CompareAndSwap(false, true) {
		return ErrStarted
	}
	if p.options.errors == nil {
		return p.runOnce(ctx)
	}
	r, err := p.openErrors()
	if err != nil {
		p.lifecycle.end(err) // wakes callers that wait for room or a reply
		return err
	}
	if r == nil {
		return p.runOnce(ctx)
	}
	p.recorder = r
	err = p.runOnce(ctx)
	if failed := r.Close(); err == nil {
		return failed
	} else if failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// openErrors opens the recorder of Run.
func (p *Pool) openErrors() (r Recorder, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("pool: opening the error recorder: %w\n%s", chain.OfPanic(cause), debug.Stack())
		}
	}()
	return p.options.errors()
}

func (p *Pool) runOnce(ctx context.Context) (err error) {
	p.makeContexts(ctx) // before Begin, after which another node may end Run
	defer p.cancelHandlers()
	defer p.logbook.writeSkipped()
	if p.border != nil {
		defer func() { p.border.End(err) }()
	}
	if p.durable != nil {
		defer p.durable.End()
	}
	if p.border != nil {
		if err := p.border.Begin(ctx); err != nil {
			if errors.Is(err, ErrFinished) {
				err = nil
			}
			p.lifecycle.end(err)
			return err
		}
	}
	if p.durable != nil {
		if over, err := p.durable.Begin(ctx, p); over || err != nil {
			p.lifecycle.end(err)
			return err
		}
	}
	p.prepare()
	if err := p.lifecycle.init(ctx); err != nil {
		p.lifecycle.end(err)
		if p.lifecycle.err != err { // the supervisor has already ended Run because of this error, or another node has
			err = errors.Join(p.lifecycle.result(), err)
		}
		return p.lifecycle.closeAll(err)
	}
	p.start()
	if p.durable != nil {
		p.durable.Start()
	}
	stop, late := ctx.Done(), make(chan struct{})
	for ended := false; !ended; {
		select {
		case <-p.done:
			ended = true
		case <-stop:
			stop = nil
			p.stop()
			defer patient.AfterFunc(p.options.drainTimeout, func() { close(late) }).Stop()
		case <-late:
			p.lifecycle.end(p.lifecycle.drainError())
			ended = true
		}
	}
	return p.lifecycle.closeAll(p.lifecycle.wait())
}

// makeContexts makes the contexts of handlers.
func (p *Pool) makeContexts(ctx context.Context) {
	p.handlerCtx, p.cancelHandlers = context.WithCancel(context.WithoutCancel(ctx))
	p.serveCtx, p.stopServe = context.WithCancel(p.handlerCtx)
}

// prepare prepares the watches and counts the groups.
func (p *Pool) prepare() {
	p.supervision.prepareWatches()
	for _, g := range p.groups {
		if len(g.units) > 0 {
			p.unfinishedGroups++
		}
	}
}

// start starts the goroutines of the workers and of the pool.
func (p *Pool) start() {
	p.rebalancer = newRebalancer(p)
	p.schedule()
	if p.unfinishedGroups == 0 {
		p.lifecycle.end(nil)
	}
	for _, proc := range p.processors {
		for _, u := range proc.units {
			if w := u.worker.Load(); w.index < 0 {
				p.running.Add(1)
				go p.run(w)
			}
		}
	}
	p.running.Add(len(p.workers) + 1)
	for _, w := range p.workers {
		w.costs.measuring = p.rebalancer != nil
		go p.run(w)
	}
	go p.monitor.run()
	if list := p.supervision.timedWatches(); len(list) > 0 {
		p.running.Add(1)
		go p.supervision.watchHealth(list)
	}
	if p.faulty && p.spec.FaultLog > 0 {
		p.running.Add(1)
		go p.supervision.logFaults(p.spec.FaultLog)
	}
	if p.rebalancer != nil {
		p.running.Add(1)
		go p.rebalancer.run()
	}
}

// schedule starts the timers and queues the instances that have work from the start. It
// runs before any worker.
func (p *Pool) schedule() {
	for _, t := range p.tickers { // all of them belong to instances of this node
		t.to.worker.Load().timers.after(t.every, t)
	}
	for _, proc := range p.processors {
		for _, u := range proc.units {
			u.worker.Load().schedule(u)
		}
	}
	for _, g := range p.groups {
		if len(g.units) > 0 {
			g.mu.Lock()
			if p.border != nil {
				g.openInputs-- // see openBorder
			}
			g.beginClosing() // a group without inputs and sources closes at once
		}
	}
}

// run is the body of a worker's goroutine.
func (p *Pool) run(w *Worker) {
	r := &runner{w: w}
	w.runner = r
	returned := false
	defer func() {
		cause := recover()
		if !returned && r.isAbandoned() {
			p.supervision.abandonedReturned()
			return
		}
		if !returned && (cause != nil || !r.w.solo.exited) && r.handleCrash(cause) {
			p.running.Add(1)
			go p.run(r.w)
		} else {
			r.w.timers.disarm()
		}
		p.lifecycle.goroutineEnded()
	}()
	r.loop()
	returned = true
}

// stop closes all inputs from outside. The queued messages are drained.
func (p *Pool) stop() {
	p.stopping.Store(true)
	if p.border != nil {
		p.border.Stopping()
	}
	if p.durable != nil {
		p.durable.Stopping()
	}
	p.events.sourcesDone()
	p.stopServe()
	for _, x := range p.externals {
		x.stop()
	}
	for _, proc := range p.processors {
		for _, u := range proc.units {
			if u.remote {
				continue
			}
			if proc.Ping {
				u.signal(controlStop)
			}
			if !proc.Ping && u.watch() != nil {
				u.signal(controlStop) // the instance may be down
			}
			if proc.Serve {
				u.worker.Load().wakeUp()
			}
		}
	}
	for _, g := range p.groups {
		if g.onTimer {
			g.inputClosed()
		}
	}
}

// stopWakeups stops the timers, which refer to the whole topology.
func (p *Pool) stopWakeups() {
	for _, proc := range p.processors {
		for i := range proc.wakeups {
			if timer := proc.wakeups[i].timer; timer != nil {
				timer.Stop()
			}
		}
	}
}

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

// sentInServe publishes the messages that Serve has sent, and waits while a queue is full.
// It runs on the goroutine of Serve, which is also the goroutine of the unit's worker.
func (p *Pool) sentInServe(o *Out) {
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
	p.calls.wait(p.serveCtx.Done())
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

// serveFailure returns the failure of a Serve that returned err. It is nil if Serve
// ended because the topology stops.
func (p *Pool) serveFailure(err error) error {
	if err == nil {
		return nil
	}
	canceled := context.Canceled
	if !p.stopping.Load() {
		canceled = nil
	}
	_, failure := chain.Sort(err, topo.ErrStopping, canceled)
	return failure
}
