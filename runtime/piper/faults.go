package piper

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

// faults counts the failures of a processor and the reactions to them.
type faults struct {
	restarts, healthCheckKills, inputTimeouts, circuitBreakerRecoveries atomic.Uint64
	abandoned, deadLetters, dropped, gaveUp, holdsLost                  atomic.Uint64

	logged [logKinds]repeated
}

// FaultFigures count the failures of one processor, or of all processors, and the
// reactions to them since the start of the topology.
type FaultFigures struct {
	Restarts                 uint64 `json:"restarts"`                   // restarted instances
	HealthCheckKills         uint64 `json:"health_check_kills"`         // instances that were abandoned or killed because a call took too long
	InputTimeouts            uint64 `json:"input_timeouts"`             // inputs without a message for longer than input_timeout
	CircuitBreakerRecoveries uint64 `json:"circuit_breaker_recoveries"` // silent inputs that received a message again
	Abandoned                uint64 `json:"abandoned"`                  // calls that hung and were abandoned with their goroutine
	DeadLetters              uint64 `json:"dead_letters"`               // messages that could not be handled and were sent to the dead_letter processor
	Dropped                  uint64 `json:"dropped"`                    // messages that could not be handled and did not become dead letters, and messages to an instance that is not restarted, except ticks
	GaveUp                   uint64 `json:"gave_up"`                    // instances that failed, or were stopped for the restart of their group, and are not restarted
	HoldsLost                uint64 `json:"holds_lost"`                 // pieces of work held by an instance when it failed (topo.Hold)
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

// figures are the figures of all processors together.
func (s *supervision) figures() (all FaultFigures) {
	for _, proc := range s.pool.processors {
		if proc.faults != nil {
			all.add(proc.faults.figures())
		}
	}
	return all
}

// FaultObserver is an Observer that is also called on failures and on the reactions to
// them.
type FaultObserver interface {
	Observer
	// Failed reports that an instance has failed. The supervisor has not decided yet.
	Failed(processor string, instance int, err error)
	// Restarted reports that a new instance has replaced an instance that ended.
	Restarted(processor string, instance int)
	// GaveUp reports that an instance failed and is not restarted. The rest of the
	// topology goes on.
	GaveUp(processor string, instance int, err error)
	// InputBroken reports that no message came along an edge for longer than its
	// input_timeout.
	InputBroken(processor string, instance int, edge string)
	// InputRecovered reports that a message came along an edge again.
	InputRecovered(processor string, instance int, edge string)
}

// StartObserver is an Observer that is also called when a restart fails.
type StartObserver interface {
	Observer
	// NotStarted reports that an instance could not be restarted, because its
	// constructor or Init failed or took too long. The supervisor has not decided yet.
	NotStarted(processor string, instance int, err error)
}

// notStarted logs that the instance could not be restarted, and calls the observer.
func (s *supervision) notStarted(u *Unit, err error) {
	p := s.pool
	if o, ok := p.options.observer.(StartObserver); ok {
		p.logbook.observe(func() { o.NotStarted(u.proc.Name, u.Index(), err) })
	}
	p.logbook.failure(u, logStart, slog.LevelWarn, "topogen: an instance cannot be restarted", err)
}

func (s *supervision) observe(call func(FaultObserver)) {
	p := s.pool
	if o, ok := p.options.observer.(FaultObserver); ok {
		p.logbook.observe(func() { call(o) })
	}
}

// logFaults logs the figures at each interval, and at the end, if they have changed.
func (s *supervision) logFaults(every time.Duration) {
	p := s.pool
	defer p.running.Done()
	defer p.lifecycle.failOnPanic("log of faults")
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var logged FaultFigures
	for over := false; !over; {
		select {
		case <-p.done:
			over = true
		case <-ticker.C:
		}
		f := s.figures()
		if f == logged {
			continue
		}
		logged = f
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

// shortError is an error whose text has no stack.
type shortError struct {
	text string
	err  error
}

func (e *shortError) Error() string { return e.text }

func (e *shortError) Unwrap() error { return e.err }

// forCaller returns err for a caller, or for a handler of dead letters, which may pass its text on. The
// text ends before the first stack, which the log and the error of Run have. fmt handles a panic of
// Error.
func forCaller(err error) error {
	if err == nil {
		return nil
	}
	if text, _, has := strings.Cut(fmt.Sprint(err), "\ngoroutine "); has {
		return &shortError{text, err}
	}
	return err
}

// withoutStack returns err without the stack of a panic, for a line of the log.
func withoutStack(err error) error {
	if e, ok := err.(*HandlerError); ok && e.Stack != nil {
		short := *e
		short.Stack = nil
		return &short
	}
	return err
}
