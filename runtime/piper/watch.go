package piper

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/alive"
	"github.com/topogen/topogen/runtime/internal/bug"
)

// Then says what an error of a handler does.
type Then uint8

const (
	ThenStop  Then = iota // ends the instance
	ThenSkip              // gives the message up
	ThenRetry             // has the message handled again
)

// Watch says how the instances of a processor are watched over. What becomes of
// those that end is for the Supervisor to say.
type Watch struct {
	Then     Then
	Attempts int           // at a message, at least 1
	Timeout  time.Duration // of a call; 0: none
	Startup  time.Duration // of constructor and Init, at a restart; 0: none
	Shutdown time.Duration // of the call that runs when the instance is stopped with a failed sibling; 0: none

	// With ThenRetry: how long the second attempt at a message waits, and each
	// further one twice as long, but at most MaxDelay. 0: at once, and no limit.
	Delay, MaxDelay time.Duration
	Jitter          float64 // 0 to 1: the part of the delay that is drawn
}

// phase of a watched instance
type watchPhase uint8

const (
	watchRunning  watchPhase = iota
	watchDown                // it has ended, or was ended
	watchStarting            // another one is being made
	watchFailed              // it has failed for good
)

// watch is what the pool knows of a watched instance. It belongs to the worker
// where the instance is at home, but for the orders and the atomics.
type watch struct {
	unit            *Unit
	life            *Life                   // nil where nothing is timed
	ctx             context.Context         // of its handlers, where it is timed
	cancel          context.CancelCauseFunc // ends ctx
	current         delivery                // what its handler was given last
	retrying        atomic.Int32            // messages that wait for another attempt
	lastAttempts    int                     // attempts at the message that was settled last
	lastRetries     bool                    // that message waits for another attempt
	delayed         []delayed               // links whose message waits for its next attempt
	heldCheckAt     int64                   // when an instance in a process is asked what it holds; 0: not
	retryAt         int64                   // when the first of them is due; 0: there is none
	holder          *holder                 // of what the instance holds
	cause           error                   // why it ended
	phase           watchPhase
	suspended       bool   // out.full counts it
	gaveUp          bool   // by the supervisor
	droppingTicks   bool   // its ticks
	goroutineLeft   bool   // its goroutine was abandoned: it needs a new sender
	isSource        bool   // its Ping or Serve counts in its group
	deferredStop    uint64 // number of the EffectStop to carry out when Serve returns or the instance is made; 0: none
	failed          atomic.Bool
	process         atomic.Pointer[Process] // that it runs in; nil: a goroutine
	killed          atomic.Bool             // its process was, by the health check
	sharedLife      atomic.Pointer[Life]    // life, for the health check
	restartAt       int64                   // when the supervisor wants to hear, 0: not
	startDeadline   int64                   // when making it has taken too long, 0: never
	hangDeadline    int64                   // under a Stepper: when a call that hangs is overdue
	hangCause       error                   // what it is abandoned for
	hungCall        *runner                 // whose call that is
	deferredControl uint32                  // control bits that came meanwhile
	starting        *startAttempt
	cancelInit      context.CancelCauseFunc            // ends the context of the Init of this instance; nil: it is that of all handlers
	closed          <-chan struct{}                    // closed when Close of the one before has returned
	cancelServe     atomic.Pointer[context.CancelFunc] // of the Serve that runs

	// Guarded by the pool's supervision.
	orders     []order
	inputsDone bool    // the supervisor was told: the instance is not to be started again
	stopCount  uint64  // counts EffectStop
	stopNumber uint64  // number of the EffectStop that is not answered yet; 0: none
	spare      Process // a process that was started and is not attached yet
}

// order is what the supervisor wants of an instance, or the answer of its maker.
type order struct {
	ChildEffect
	at           int64         // of EffectWait
	stop         uint64        // of EffectStop: its number
	closeOutputs bool          // it is gone, and sends no more
	started      *startAttempt // not nil: the instance is there, or not
	ended        Process       // not nil: that has ended
}

// making is the making of an instance, which may take too long.
type startAttempt struct {
	cancel    context.CancelCauseFunc // ends the context of Init; nil: there is no limit
	began     atomic.Int64            // when the constructor was called, plus 1; 0: it waits for Close of the instance before
	uncounted atomic.Bool             // it no longer counts in makers
	timedOut  bool                    // it took too long
	holder    *holder                 // of what its Init holds
	adopt     func()
	err       error
}

// begin returns the context of an Init that may take too long. It lives on when
// Init has returned, as what Init opens with it does.
func (m *startAttempt) begin(ctx context.Context) context.Context {
	ctx, m.cancel = context.WithCancelCause(ctx)
	return ctx
}

// giveUp tells an Init that hangs.
func (m *startAttempt) cancelInit() {
	if m.cancel != nil {
		m.cancel(errStartup)
	}
}

// watch is what the pool knows of a watched instance; nil for another one.
func (u *Unit) watch() *watch {
	if u.proc.watches == nil {
		return nil
	}
	return u.proc.watches[u.index]
}

// watchOver begins to watch u.
func (u *Unit) addWatch() {
	w := &watch{unit: u, isSource: u.proc.Ping || u.proc.Serve, holder: &holder{proc: u.proc}}
	u.proc.watches = append(u.proc.watches, w)
	w.renewLife()
}

// supervise prepares what the watches of all instances have in common.
func (p *Pool) prepareWatches() {
	for _, proc := range p.processors {
		if proc.Events || proc.Watch != nil {
			proc.wakeups = make([]wakeup, len(proc.units))
		}
		if proc.Watch != nil {
			proc.contexts = make([]context.Context, len(proc.units))
		}
		for _, w := range proc.watches {
			w.renewContext()
		}
	}
}

// renewLife gives the instance a life that no goroutine has been in.
func (w *watch) renewLife() {
	u := w.unit
	if w := u.proc.Watch; w.Timeout == 0 && w.Shutdown == 0 {
		return
	}
	w.life = &Life{pool: u.proc.pool}
	w.sharedLife.Store(w.life)
	w.renewContext()
}

// renewHolder sets the holder of a new instance: it holds what its Init has held.
func (w *watch) renewHolder(h *holder) {
	proc := w.unit.proc
	w.holder = h
	proc.contexts[w.unit.index] = nil
	if !w.goroutineLeft {
		w.renewContext() // else with its life
	}
}

// renewContext makes the context of the handlers. It carries the life, and ends when
// the goroutine is abandoned.
func (w *watch) renewContext() {
	if w.cancel != nil {
		w.cancel(context.Canceled) // the instance before has ended
	}
	if w.life != nil {
		w.ctx, w.cancel = context.WithCancelCause(alive.With(w.unit.holding(w.unit.proc.pool.handlerCtx), w.life))
	}
}

// Life is the life of the instance; nil where nothing is timed. Generated code
// gives it to a new sender.
func (u *Unit) Life() *Life {
	if w := u.watch(); w != nil {
		return w.life
	}
	return nil
}

// Enter goes into a handler of a timed instance. What it returns is left
// afterwards.
func (u *Unit) Enter() *Life {
	l := u.Life()
	l.Enter()
	return l
}

// HasFailed reports whether the instance has failed for good: its messages are
// discarded.
func (u *Unit) HasFailed() bool {
	w := u.watch()
	return w != nil && (w.phase == watchFailed || w.droppingTicks)
}

// IsFresh reports, in adopt, whether the instance needs a new sender, since an
// abandoned goroutine has the one before. The new one has the new life of the
// instance, and the same Out and links: a goroutine that was abandoned ends before
// it touches those.
func (u *Unit) IsFresh() bool { return u.watch().goroutineLeft && !bug.On(bug.AbandonedSender) }

// Now is the time since the beginning, for the deadlines of inputs.
func (u *Unit) Now() time.Duration { return time.Duration(u.proc.pool.clock()) }

// suspend keeps the unit from having turns; resume ends that.
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
