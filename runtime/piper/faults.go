package piper

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// faults counts what went wrong with a processor, and what was done about it.
type faults struct {
	restarts, healthCheckKills, inputTimeouts, circuitBreakerRecoveries atomic.Uint64
	abandoned, deadLetters, dropped, gaveUp, holdsLost                  atomic.Uint64

	logged [logKinds]repeated
}

// FaultFigures count what went wrong with a processor, or with all of them, and
// what was done about it, since the beginning.
type FaultFigures struct {
	Restarts                 uint64 `json:"restarts"`                   // instances that were made anew
	HealthCheckKills         uint64 `json:"health_check_kills"`         // instances that did not answer in time
	InputTimeouts            uint64 `json:"input_timeouts"`             // inputs that were silent for too long
	CircuitBreakerRecoveries uint64 `json:"circuit_breaker_recoveries"` // of those, where something came again
	Abandoned                uint64 `json:"abandoned"`                  // handlers that hung and were left behind with their goroutine
	DeadLetters              uint64 `json:"dead_letters"`               // messages that could not be handled
	Dropped                  uint64 `json:"dropped"`                    // the same, where no dead_letter is named, and what came for an instance that had failed for good
	GaveUp                   uint64 `json:"gave_up"`                    // instances that failed for good
	HoldsLost                uint64 `json:"holds_lost"`                 // pieces of work that an instance held when it failed (topo.Hold)
}

func (f *faults) figures() FaultFigures {
	return FaultFigures{
		Restarts:                 f.restarts.Load(),
		HealthCheckKills:         f.healthCheckKills.Load(),
		InputTimeouts:            f.inputTimeouts.Load(),
		CircuitBreakerRecoveries: f.circuitBreakerRecoveries.Load(),
		Abandoned:                f.abandoned.Load(),
		DeadLetters:              f.deadLetters.Load(),
		Dropped:                  f.dropped.Load(),
		GaveUp:                   f.gaveUp.Load(),
		HoldsLost:                f.holdsLost.Load(),
	}
}

func (f *FaultFigures) add(g FaultFigures) {
	f.Restarts += g.Restarts
	f.HealthCheckKills += g.HealthCheckKills
	f.InputTimeouts += g.InputTimeouts
	f.CircuitBreakerRecoveries += g.CircuitBreakerRecoveries
	f.Abandoned += g.Abandoned
	f.DeadLetters += g.DeadLetters
	f.Dropped += g.Dropped
	f.GaveUp += g.GaveUp
	f.HoldsLost += g.HoldsLost
}

// faultFigures are those of all processors.
func (p *Pool) faultFigures() (all FaultFigures) {
	for _, proc := range p.processors {
		if proc.faults != nil {
			all.add(proc.faults.figures())
		}
	}
	return all
}

// CountInputTimeout counts an input of the unit that was silent for too long.
func (u *Unit) CountInputTimeout(edge int) {
	u.proc.faults.inputTimeouts.Add(1)
	u.logSilentInput(edge)
	u.proc.pool.observeFault(func(o FaultObserver) { o.InputBroken(u.proc.Name, u.Index(), u.proc.pool.edgeName(edge)) })
}

// CountRecovery counts an input of the unit that was silent and is not any more.
func (u *Unit) CountRecovery(edge int) {
	u.proc.faults.circuitBreakerRecoveries.Add(1)
	u.proc.pool.observeFault(func(o FaultObserver) {
		o.InputRecovered(u.proc.Name, u.Index(), u.proc.pool.edgeName(edge))
	})
}

// FaultObserver is an Observer that hears also of failures and what is done about
// them.
type FaultObserver interface {
	Observer
	// Failed: an instance has failed; the supervisor has not yet decided.
	Failed(processor string, instance int, err error)
	// Restarted: a new instance runs in place of an instance that has ended.
	Restarted(processor string, instance int)
	// GaveUp: an instance has failed for good, and the rest goes on.
	GaveUp(processor string, instance int, err error)
	// InputBroken: nothing came along an edge for as long as its input_timeout says.
	InputBroken(processor string, instance int, edge string)
	// InputRecovered: something came again.
	InputRecovered(processor string, instance int, edge string)
}

// StartObserver is an Observer that also hears of restarts that fail.
type StartObserver interface {
	Observer
	// NotStarted: an instance could not be restarted, since its constructor or Init
	// failed or took too long; the supervisor has not yet decided.
	NotStarted(processor string, instance int, err error)
}

// notStarted says that u could not be restarted.
func (p *Pool) notStarted(u *Unit, err error) {
	if o, ok := p.options.observer.(StartObserver); ok {
		p.observe(func() { o.NotStarted(u.proc.Name, u.Index(), err) })
	}
	p.logLimited(u, logStart, slog.LevelWarn, "topogen: an instance cannot be restarted", err)
}

func (p *Pool) observeFault(call func(FaultObserver)) {
	if o, ok := p.options.observer.(FaultObserver); ok {
		p.observe(func() { call(o) })
	}
}

// logFaults writes a line each interval, where there is something to say, and one
// at the end where that is news.
func (p *Pool) logFaults(every time.Duration) {
	defer p.running.Done()
	defer p.failOnPanic("log of faults")
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var said FaultFigures
	for over := false; !over; {
		select {
		case <-p.done:
			over = true
		case <-ticker.C:
		}
		f := p.faultFigures()
		if f == (FaultFigures{}) || over && f == said {
			continue
		}
		said = f
		p.log().LogAttrs(context.Background(), slog.LevelInfo, "fault tolerance stats",
			slog.Uint64("restarts", f.Restarts),
			slog.Uint64("health_check_kills", f.HealthCheckKills),
			slog.Uint64("input_timeouts", f.InputTimeouts),
			slog.Uint64("circuit_breaker_recoveries", f.CircuitBreakerRecoveries),
			slog.Uint64("abandoned", f.Abandoned),
			slog.Uint64("dead_letters", f.DeadLetters),
			slog.Uint64("dropped", f.Dropped),
			slog.Uint64("gave_up", f.GaveUp),
			slog.Uint64("holds_lost", f.HoldsLost),
		)
	}
}

// withoutStack is err as a line of a log shows it.
func withoutStack(err error) error {
	if e, ok := err.(*HandlerError); ok && e.Stack != nil {
		short := *e
		short.Stack = nil
		return &short
	}
	return err
}
