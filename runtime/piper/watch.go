package piper

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/alive"
	"github.com/topogen/topogen/runtime/internal/hold"
)

// Then is the reaction to an error of a handler.
type Then uint8

const (
	ThenStop  Then = iota // end the instance
	ThenSkip              // give up the message
	ThenRetry             // handle the message again
)

// Watch has the settings for failures of a processor's instances. The Supervisor
// decides what happens after an instance has ended.
type Watch struct {
	Then     Then
	Attempts int           // maximum attempts at a message, at least 1
	Timeout  time.Duration // maximum duration of a call; 0 means no limit
	Startup  time.Duration // maximum duration of constructor and Init together; 0 means no limit
	Shutdown time.Duration // maximum duration of the call that runs when the instance is stopped with a failed sibling; 0 means no limit

	// With ThenRetry: Delay is the pause before the second attempt at a message. It
	// doubles for each further attempt, up to MaxDelay. A Delay of 0 means no pause, a
	// MaxDelay of 0 no limit.
	Delay, MaxDelay time.Duration
	Jitter          float64 // between 0 and 1: the part of the delay that is random
}

// phases of a watched instance
type watchPhase uint8

const (
	watchRunning  watchPhase = iota
	watchDown                // the instance has ended
	watchStarting            // a new instance is being started
	watchRetired             // the instance has ended and is not restarted
)

// watch is the state of a watched instance. Except for the commands and the atomics, it
// belongs to the worker of the instance.
type watch struct {
	unit            *Unit
	position        *Position               // nil if calls have no timeout
	ctx             context.Context         // context of its handlers, if calls have a timeout
	cancel          context.CancelCauseFunc // ends ctx
	attempts        attempts
	holder          *holder // counts the holds of the instance
	cause           error   // why it ended
	isolation       Isolation
	phase           watchPhase
	suspended       bool // the suspension counts in out.full
	gaveUp          bool // the supervisor has returned EffectGiveUp
	droppingTicks   bool // dropTicks runs
	goroutineLeft   bool // its goroutine was abandoned, so the next instance needs a new sender
	source          source
	deferredStop    uint64 // number of the EffectStop to carry out when Serve or the start has returned; 0 if none
	failed          atomic.Bool
	finishDelay     finishDelay
	sharedPosition  atomic.Pointer[Position] // a copy of position for the health check
	restartAt       int64                    // when to report ChildDue; 0 means never
	hangDeadline    int64                    // under a Stepper: when the call that hangs is overdue
	hangCause       error                    // under a Stepper: the cause for abandoning the call that hangs
	hungCall        *runner                  // under a Stepper: the runner of the call that hangs
	deferredControl uint32                   // under a Stepper: control bits that are kept while a call hangs
	starting        *startAttempt
	cancelInit      context.CancelCauseFunc            // ends the context of this instance's Init; nil if Init had the context of all handlers
	closed          <-chan struct{}                    // closed when Close of the previous instance has returned
	cancelServe     atomic.Pointer[context.CancelFunc] // cancels the Serve that runs

	// Guarded by Pool.supervision.
	commands   []command
	inputsDone bool   // ChildInputsDone was reported, so the instance must not be started again
	stopCount  uint64 // number of EffectStops so far
	stopNumber uint64 // number of the EffectStop that is not answered yet; 0 if none
}

// command is an instruction to the worker of an instance: an effect of the supervisor, or
// the result of a start or of a process.
type command struct {
	ChildEffect
	at           int64         // for EffectWait
	stop         uint64        // for EffectStop: its number
	closeOutputs bool          // the instance is not restarted and sends no more messages
	started      *startAttempt // not nil: the start has succeeded or failed
	late         *startAttempt // not nil: the start takes too long
	ended        Process       // not nil: this process has ended
}

// command adds a command, which the next turn of the instance carries out.
func (w *watch) command(o command) {
	p := w.unit.proc.pool
	p.supervision.mu.Lock()
	w.commands = append(w.commands, o)
	p.supervision.mu.Unlock()
	w.unit.signal(controlCommand)
}

// startAttempt is the start of an instance, which may take too long.
type startAttempt struct {
	cancel    context.CancelCauseFunc // ends the context of Init; nil if there is no limit
	uncounted atomic.Bool             // the start no longer counts in Pool.starters
	timedOut  bool                    // the start took too long
	holder    *holder                 // counts the holds of its Init
	adopt     func()
	err       error
}

// begin returns a context for Init that cancelInit can end. It does not end when Init
// returns, because what Init opens may use it.
func (m *startAttempt) begin(ctx context.Context) context.Context {
	ctx, m.cancel = context.WithCancelCause(ctx)
	return ctx
}

// cancelInit ends the context of an Init that hangs.
func (m *startAttempt) cancelInit() {
	if m.cancel != nil {
		m.cancel(errStartup)
	}
}

// newWatch makes the watch of u.
func newWatch(u *Unit) *watch {
	w := &watch{unit: u, holder: &holder{proc: u.proc}}
	w.source.unit, w.source.counted = u, u.proc.Ping || u.proc.Serve
	w.attempts.unit = u
	w.finishDelay.group, w.isolation.watch = u.proc.group, w
	w.renewPosition()
	return w
}

// awaitsRetry reports whether a message waits for its next attempt. A nil watch has none.
func (w *watch) awaitsRetry() bool { return w != nil && w.attempts.waiting.Load() > 0 }

// mustStop reports whether the supervisor has ordered the instance to stop.
func (w *watch) mustStop() bool { return w != nil && w.deferredStop != 0 }

// renewPosition gives the instance a new Position.
func (w *watch) renewPosition() {
	u := w.unit
	if w := u.proc.Watch; w.Timeout == 0 && w.Shutdown == 0 {
		return
	}
	w.position = &Position{pool: u.proc.pool}
	w.sharedPosition.Store(w.position)
	w.renewContext()
}

// renewHolder sets the holder of a new instance, which already counts the holds of its
// Init.
func (w *watch) renewHolder(h *holder) {
	w.holder = h
	w.unit.proc.contexts.list[w.unit.index] = nil
	if !w.goroutineLeft {
		w.renewContext() // otherwise renewPosition does it
	}
}

// renewContext makes the context of the handlers. The context carries the Position,
// and ends when the goroutine is abandoned.
func (w *watch) renewContext() {
	if w.cancel != nil {
		w.cancel(context.Canceled) // the previous instance has ended
	}
	if w.position != nil {
		w.ctx, w.cancel = context.WithCancelCause(alive.With(hold.With(fenced(w.unit, w.unit.proc.pool.handlerCtx), w.holder), w.position))
	}
}

// isNeeded reports whether something is lost if the instance ends between two calls: a message, which
// is queued or may still arrive, the call of Finish, or held work.
func (w *watch) isNeeded() bool {
	return w.unit.proc.receives || w.unit.proc.Finish || w.holder.count() > 0
}

func (w *watch) child() Child { return Child{w.unit.proc.index, w.unit.Index()} }

// suspend keeps the unit from having turns until resume.
func (w *watch) suspend() {
	if !w.suspended {
		w.suspended = true
		w.unit.out.full++
	}
}

func (w *watch) resume() {
	if w.suspended {
		w.suspended = false
		w.unit.out.lessFull()
	}
}
