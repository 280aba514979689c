package piper

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/internal/patient"
	"github.com/topogen/topogen/runtime/topo"
)

// fail ends Run with err at once, and records err if it is a HandlerError.
func (l *lifecycle) fail(err error) {
	if e, ok := errors.AsType[*HandlerError](err); ok {
		l.pool.logbook.record(e)
	}
	l.end(err)
}

// failOnPanic turns a panic of one of the pool's own goroutines, or of a logger that it
// calls, into the error of Run. It must be deferred.
func (l *lifecycle) failOnPanic(who string) {
	if cause := recover(); cause != nil {
		l.end(fmt.Errorf("pool: %s: panic: %v\n%s", who, cause, debug.Stack()))
	}
}

// end ends Run. The first call decides the error of Run.
func (l *lifecycle) end(err error) {
	p := l.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended.Load() {
		if e, ok := err.(*HandlerError); ok {
			// A handler may return the error of its context, which has ended. This is
			// not a failure.
			if signal, _ := chain.Sort(e.Err, context.Canceled, topo.ErrStopping); signal == nil {
				l.lateErrors.add(e)
			}
		}
		return
	}
	l.err = err
	p.ended.Store(true)
	if err != nil && p.cancelHandlers != nil {
		p.cancelHandlers()
	}
	for _, x := range p.externals {
		x.end()
	}
	close(p.done)
	p.interrupt()
	for _, w := range slices.Concat(p.workers, p.solos) {
		w.wakeUp()
	}
}

// groupFinished counts a finished group. The last one ends Run.
func (l *lifecycle) groupFinished() {
	p := l.pool
	p.mu.Lock()
	p.unfinishedGroups--
	last := p.unfinishedGroups == 0
	p.mu.Unlock()
	if last {
		l.end(nil)
	}
}

// goroutineEnded is called at the end of a goroutine that runs handlers, or that takes
// instances from such a goroutine.
func (l *lifecycle) goroutineEnded() {
	p := l.pool
	p.endedGoroutines.Add(1)
	p.running.Done()
}

// wait waits for the workers and returns the error that ended Run.
func (l *lifecycle) wait() error {
	p := l.pool
	workersDone, startersDone := make(chan struct{}), make(chan struct{})
	go func() {
		p.running.Wait()
		p.calls.stop()
		p.stopWakeups()
		close(workersDone)
		p.starters.Wait()
		close(startersDone)
	}()
	if l.err == nil {
		<-workersDone
	}
	if !patient.Wait(abandonAfter, startersDone) {
		p.endedGoroutines.Load() // some goroutines still run: synchronize with the others, which have ended
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return l.result()
}

// drainError lists what was left when the drain timeout passed.
func (l *lifecycle) drainError() error {
	p := l.pool
	var b strings.Builder
	for i := range p.edges {
		if p.edges[i].Durable {
			continue
		}
		if n := p.figures.edge(i).Len + p.figures.sentInCalls(i); n > 0 {
			fmt.Fprintf(&b, "\n\t%s: %d messages left", p.edgeName(i), n)
		}
	}
	for _, proc := range p.processors {
		if n := proc.pendingReplies.Load(); n > 0 {
			fmt.Fprintf(&b, "\n\tprocessor %q: %d replies pending", proc.Name, n)
		}
		if n := proc.holds.Load(); n > 0 {
			fmt.Fprintf(&b, "\n\tprocessor %q: %d pieces of work held (topo.Hold)", proc.Name, n)
		}
		for _, u := range proc.units {
			if w := u.worker.Load(); w.state.Load()&1 == 1 && w.index < 0 {
				fmt.Fprintf(&b, "\n\tprocessor %q, instance %d: a call has not returned", proc.Name, u.Index())
			}
			if u.watch().awaitsRetry() {
				fmt.Fprintf(&b, "\n\tprocessor %q, instance %d: a message waits for its next attempt", proc.Name, u.Index())
			} else if w := u.watch(); w != nil && w.finishDelay.on.Load() {
				fmt.Fprintf(&b, "\n\tprocessor %q, instance %d: Finish waits for a restart", proc.Name, u.Index())
			}
		}
	}
	return fmt.Errorf("%w after %v%s", ErrDrainTimeout, p.options.drainTimeout, b.String())
}

// result is the error of Run: the error that ended it, joined with the errors of
// instances that were not restarted.
func (l *lifecycle) result() error {
	err := l.err
	if errors.Unwrap(err) == ErrDrainTimeout {
		err = l.lateErrors.join(err, "errors of handlers that came back late")
	}
	return l.failures.join(err, "instances that were given up")
}
