package piper

import (
	"context"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/chain"
)

// Supervisor decides what happens after instances end. supervise.Supervisor implements
// it. Its decisions depend only on earlier events. The pool calls it under a lock,
// applies the returned effects in order, and reports their results as further events.
type Supervisor interface {
	// Seed sets the seed of random delays. A Stepper calls it before the first Step.
	Seed(seed uint64)
	// Step handles an event. now is the time since the start of the topology. It
	// returns the effects to apply.
	Step(now time.Duration, e ChildEvent) []ChildEffect
}

// Child identifies an instance for a supervisor: the index of the processor and the
// index of the instance.
type Child struct{ Processor, Instance int }

// ChildEventKind is the kind of a ChildEvent.
type ChildEventKind uint8

const (
	ChildFailed     ChildEventKind = iota // by an error, a panic, or the end of its process; the instance has ended
	ChildHung                             // a call took too long; the instance was abandoned or its process killed
	ChildEnded                            // Serve returned nil, Ping returned Done, or its process ended and is not needed; after Serve and Ping it may still handle messages, and fail
	ChildStopped                          // the answer to EffectStop
	ChildNotStopped                       // the answer to EffectStop if its inputs were closed and drained before it was stopped: it runs on, and may fail
	ChildStarted                          // the answer to EffectStart: it runs
	ChildNotStarted                       // the answer to EffectStart if its constructor or Init failed or took too long; also after the first Init. Without an error: the instance was not started, because it has nothing left to do
	ChildDue                              // the delay of an EffectWait has passed
	ChildInputsDone                       // its inputs are closed and drained, or it has none and the topology stops: it must not be started again. It is not down, or it does not need Finish
)

// ChildEvent is an event of an instance.
type ChildEvent struct {
	Kind  ChildEventKind
	Child Child
	Err   error // for ChildFailed, ChildHung and ChildNotStarted
}

// ChildEffectKind is the kind of a ChildEffect.
type ChildEffectKind uint8

const (
	EffectWait   ChildEffectKind = iota // report ChildDue after Delay; replaces another wait of the child
	EffectStart                         // start a new instance of the child, which does not run; the answer is ChildStarted or ChildNotStarted
	EffectStop                          // end the child, which runs, is being started, or has ended; the answer is ChildStopped, ChildNotStopped, or the event of an end before that
	EffectDone                          // the child has ended without a failure: it will not send on its own again, unless it is started together with its restart group
	EffectGiveUp                        // the child has failed and is not restarted; the rest of the topology goes on
	EffectEnd                           // end the topology with Err
)

// ChildEffect is a decision of a supervisor.
type ChildEffect struct {
	Kind  ChildEffectKind
	Child Child
	Delay time.Duration // for EffectWait
	Err   error         // for EffectGiveUp and EffectEnd
}

// supervision follows the failures of watched instances: it reports them to the Supervisor and
// turns the effects into commands for the instances.
type supervision struct {
	pool         *Pool
	mu           sync.Mutex   // guards the commands of watched instances, and calls of the supervisor
	closed       bool         // Run is about to return
	abandonedNow atomic.Int32 // number of abandoned goroutines that have not returned
}

// spawn calls a function that may take long, on a new goroutine. Under a Stepper, which
// has only one goroutine, it calls the function directly.
func (s *supervision) spawn(call func()) {
	p := s.pool
	if p.stepper != nil {
		call()
		return
	}
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		call()
	}()
}

// report reports an event to the supervisor and applies the effects that it
// returns.
func (s *supervision) report(e ChildEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reportLocked(e)
}

func (s *supervision) reportLocked(e ChildEvent) {
	p := s.pool
	switch e.Kind {
	case ChildInputsDone:
		p.processors[e.Child.Processor].watches[e.Child.Instance].inputsDone = true
	case ChildStopped, ChildNotStopped, ChildFailed, ChildHung, ChildEnded, ChildNotStarted:
		p.processors[e.Child.Processor].watches[e.Child.Instance].stopNumber = 0
	}
	if p.spec.Supervisor == nil {
		switch e.Kind {
		case ChildFailed, ChildHung, ChildNotStarted:
			s.apply(ChildEffect{Kind: EffectEnd, Child: e.Child, Err: e.Err})
		case ChildEnded:
			s.apply(ChildEffect{Kind: EffectDone, Child: e.Child})
		}
		return
	}
	for _, f := range p.spec.Supervisor.Step(time.Duration(p.clock()), e) {
		s.apply(f)
	}
}

// answerStop answers the EffectStop with the given number. kind is ChildStopped, or
// ChildNotStopped if the instance runs on. If the instance has ended in another way before, the
// event of that end was the answer, and answerStop does nothing.
func (s *supervision) answerStop(w *watch, number uint64, kind ChildEventKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.stopNumber == number {
		s.reportLocked(ChildEvent{Kind: kind, Child: w.child()})
	}
}

// unansweredStop is the number of the EffectStop that is not answered yet, or 0.
func (s *supervision) unansweredStop(w *watch) (number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.stopNumber
}

// apply turns an effect into a command for its instance. The caller holds the
// lock, so that the effects of two events do not mix.
func (s *supervision) apply(f ChildEffect) {
	p := s.pool
	if f.Kind == EffectEnd {
		p.lifecycle.end(f.Err)
		return
	}
	proc := p.processors[f.Child.Processor]
	w := proc.watches[f.Child.Instance]
	now := p.clock()
	o := command{ChildEffect: f, at: now + min(int64(f.Delay), math.MaxInt64-now)}
	// The instance may have failed before it read an earlier EffectStart. The new command replaces that one.
	w.commands = slices.DeleteFunc(w.commands, func(o command) bool { return o.Kind == EffectStart })
	if f.Kind == EffectStop {
		w.stopCount++
		o.stop, w.stopNumber = w.stopCount, w.stopCount
		if d := proc.Watch.Shutdown; d > 0 && p.stepper == nil {
			s.limitStop(w, w.stopCount, d)
		} else if d > 0 && w.hungCall != nil {
			p.stepper.setHangDeadline(w, now+int64(d), errShutdown)
		}
	}
	w.commands = append(w.commands, o)
	if f.Kind == EffectStop {
		if cancel := w.cancelServe.Load(); cancel != nil {
			(*cancel)()
		}
	}
	w.unit.signal(controlCommand)
}

// endSpares kills all processes that were started and not taken over.
func (s *supervision) endSpares() {
	s.mu.Lock()
	s.closed = true
	var spares []Process
	for _, proc := range s.pool.processors {
		for _, w := range proc.watches {
			if spare := w.isolation.endSpare(); spare != nil {
				spares = append(spares, spare)
			}
		}
	}
	s.mu.Unlock()
	late := time.After(abandonAfter)
	for _, spare := range spares {
		select {
		case <-spare.Done():
		case <-late:
			return // the process is blocked in the kernel
		}
	}
}

// prepareWatches allocates what watches and events of all instances need.
func (s *supervision) prepareWatches() {
	for _, proc := range s.pool.processors {
		if proc.Events || proc.Watch != nil {
			proc.wakeups = make([]wakeup, len(proc.units))
		}
		if proc.Watch != nil {
			proc.contexts.list = make([]context.Context, len(proc.units))
		}
		for _, w := range proc.watches {
			w.renewContext()
		}
	}
}

// reconstruct makes a new value for u.
func (s *supervision) reconstruct(ctx context.Context, u *Unit) (adopt func(), err error) {
	p := s.pool
	defer func() {
		if cause := recover(); cause != nil {
			e := p.handlerError(u, nil, "Init", chain.OfPanic(cause))
			e.Stack = debug.Stack()
			p.logbook.record(e)
			err = e
		}
	}()
	adopt, err = u.cell.Renew(ctx)
	if err != nil {
		e := p.handlerError(u, nil, "Init", err)
		p.logbook.record(e)
		return nil, e
	}
	return adopt, nil
}

// sourcesDone reports to the supervisor, when the topology stops, that the instances
// without inputs must not be started again. Instances with inputs are restarted while
// they have queued messages. For the groups with Finish, sourceStopped reports it
// later, because an instance that is down must be started again for Finish.
func (e *events) sourcesDone() {
	p := e.pool
	if p.spec.Supervisor == nil {
		return
	}
	for _, proc := range p.processors {
		for _, w := range proc.watches {
			if !proc.receives && !proc.group.finishes {
				p.supervision.report(ChildEvent{Kind: ChildInputsDone, Child: w.child()})
			}
		}
	}
}

// inputsDone reports to the supervisor that all inputs of the group's instances are
// closed and drained.
func (g *group) inputsDone() {
	for _, u := range g.units {
		if w := u.watch(); w != nil {
			g.pool.supervision.report(ChildEvent{Kind: ChildInputsDone, Child: w.child()})
		}
	}
}
