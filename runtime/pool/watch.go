package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/alive"
	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/topo"
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
	Startup  time.Duration // of constructor and Init, when it is made anew; 0: none
}

// phase of a watched instance
type watchPhase uint8

const (
	watchRunning watchPhase = iota
	watchDown               // it has ended, or was ended
	watchMaking             // another one is being made
	watchFailed             // it has failed for good
)

// watch is what the pool knows of a watched instance. It belongs to the worker
// where the instance is at home, but for the orders and the atomics.
type watch struct {
	unit      *Unit
	life      *Life           // nil where nothing is timed
	ctx       context.Context // of its handlers, where it is timed
	hand      held            // what its handler was given last
	repeating int             // messages that are to be handled again
	letter    *topo.DeadLetter
	cause     error // why it ended
	phase     watchPhase
	suspended bool                // out.full counts it
	gaveUp    bool                // by the supervisor
	left      bool                // its goroutine was abandoned: it needs a new sender
	equipped  bool                // it was given one
	source    bool                // its Ping or Serve counts in its group
	stop      uint64              // the EffectStop that is to be obeyed when Serve returns, or when it is made; 0: none
	out       atomic.Pointer[Out] // of the unit, for figures
	failed    atomic.Bool
	process   atomic.Pointer[Process] // that it runs in; nil: a goroutine
	killed    atomic.Bool             // its process was, by the health check
	lives     atomic.Pointer[Life]    // life, for the health check
	dueAt     int64                   // when the supervisor wants to hear, 0: not
	startBy   int64                   // when making it has taken too long, 0: never
	hangsTill int64                   // under a Stepper: when a call that hangs is overdue
	hangs     *runner                 // whose call that is
	unheard   uint32                  // control bits that came meanwhile
	making    *making
	closed    chan struct{}                      // closed when Close of the one before has returned
	endServe  atomic.Pointer[context.CancelFunc] // of the Serve that runs

	// Guarded by the pool's supervision.
	orders   []order
	stops    uint64  // counts EffectStop
	stopping uint64  // the one that is not answered yet; 0: none
	spare    Process // that was started and that nobody has taken yet
}

// order is what the supervisor wants of an instance, or the answer of its maker.
type order struct {
	ChildEffect
	at     int64   // of EffectWait
	stop   uint64  // of EffectStop: its number
	silent bool    // it is gone, and sends no more
	made   *making // not nil: the instance is there, or not
	ended  Process // not nil: that has ended
}

// making is the making of an instance, which may take too long.
type making struct {
	over  atomic.Bool // somebody has taken it off the pool's count
	late  bool        // it took too long
	adopt func()
	err   error
}

// watch is what the pool knows of a watched instance; nil for another one.
func (u *Unit) watch() *watch {
	if u.proc.watches == nil {
		return nil
	}
	return u.proc.watches[u.index]
}

// watchOver begins to watch u.
func (u *Unit) watchOver() {
	w := &watch{unit: u, source: u.proc.Ping || u.proc.Serve}
	u.proc.watches = append(u.proc.watches, w)
	w.out.Store(u.out)
	w.renewLife()
}

// supervise prepares what the watches of all instances have in common.
func (p *Pool) supervise() {
	for _, proc := range p.processors {
		if proc.Events || proc.Watch != nil {
			proc.wakes = make([]wake, len(proc.units))
		}
		for _, w := range proc.watches {
			w.renewContext()
		}
	}
}

// renewLife gives the instance a life that no goroutine has been in.
func (w *watch) renewLife() {
	u := w.unit
	if u.proc.Watch.Timeout == 0 {
		return
	}
	w.life = &Life{pool: u.proc.pool}
	w.lives.Store(w.life)
	w.renewContext()
}

// renewContext makes the context of handlers one that knows of the life.
func (w *watch) renewContext() {
	if w.life != nil {
		w.ctx = alive.With(w.unit.proc.pool.handlerCtx, w.life)
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
	return w != nil && w.phase == watchFailed
}

// IsFresh reports, in adopt, whether the instance needs a new sender, since the
// one before may still be used by a goroutine that was abandoned.
func (u *Unit) IsFresh() bool { return u.watch().left && !bug.On(bug.AbandonedSender) }

// Equip gives the instance a new sender.
func (u *Unit) Equip(out *Out) {
	out.unit, out.full = u, 1 // suspended, as the one before
	paused := u.out.paused.Load()
	if u.out.pauses {
		paused += uint64(u.proc.pool.clock())
	}
	out.paused.StoreRelease(paused)
	u.out = out
	w := u.watch()
	w.equipped = true
	w.out.Store(out)
}

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

// erred decides what an error of a handler does. It reports whether the instance
// goes on.
func (r *runner) erred(u *Unit, l *Link, method string, err error) (goesOn bool) {
	p := r.w.pool
	e := p.handlerError(u, l, method, err)
	w := u.watch()
	if w == nil {
		p.fail(e)
		return false
	}
	p.record(e)
	then := u.proc.Watch.Then
	if w.endsProcess(err) {
		then = ThenStop
	}
	goesOn = w.settle(l, e, then)
	if l != nil {
		l.relist()
	}
	if goesOn {
		p.say(slog.LevelWarn, "topogen: a handler has failed", slog.Any("error", e))
		return true
	}
	w.end(w.failedHow(), e)
	return false
}

// failedHow is whether the instance has failed of itself, or was killed.
func (w *watch) failedHow() ChildEventKind {
	if w.killed.Load() {
		return ChildHung
	}
	return ChildFailed
}

// settle decides what becomes of the message in hand, when a handler has failed
// that was called for l. It reports whether the instance goes on. The hand is empty
// for a tick, for which there is one attempt, and where the message was handled and
// what was called for it after that has failed.
func (w *watch) settle(l *Link, e *HandlerError, then Then) (goesOn bool) {
	h := w.hand
	w.hand = nil
	switch proc := w.unit.proc; {
	case h == nil:
		if l != nil && proc.pool.edges[l.edge].From < 0 {
			proc.faults.dropped.Add(1)
		}
	case then == ThenStop && bug.On(bug.HandLost):
	case then != ThenSkip && h.tried() < proc.Watch.Attempts:
		h.repeat()
		w.repeating++
	default:
		w.giveUpMessage(h, e)
	}
	return then != ThenStop
}

// giveUpMessage makes a dead letter of a message, or counts it as dropped.
func (w *watch) giveUpMessage(h held, e *HandlerError) {
	u := w.unit
	p := u.proc.pool
	edge := h.of()
	letter := topo.NewDeadLetter(topo.DeadLetter{
		Time: p.time(p.clock()), Processor: u.proc.Name, Instance: u.Index(),
		Edge: edge, Message: p.edges[edge].Message, Attempts: h.tried(), Err: e.Err,
	}, h.message())
	h.drop(e.Err)
	switch {
	case w.left: // there is no sender for it yet
		w.letter = &letter
		u.proc.group.enter() // until it is sent
	case u.cell.DeadLetter(letter):
		if bug.On(bug.LetterTwice) {
			u.cell.DeadLetter(letter)
		}
		u.proc.faults.deadLetters.Add(1)
	default:
		u.proc.faults.dropped.Add(1)
	}
}

// giveUpLast gives up a message that would have been handled again, had the instance
// not failed for good.
func (w *watch) giveUpLast(h held) {
	if w.left { // there is no sender any more
		h.drop(w.cause)
		w.unit.proc.faults.dropped.Add(1)
	} else {
		w.giveUpMessage(h, &HandlerError{Err: w.cause})
	}
	w.fallSilent()
}

// end is told that the instance has ended. Its owner calls it.
func (w *watch) end(kind ChildEventKind, err error) {
	u := w.unit
	p := u.proc.pool
	if kind != ChildEnded {
		w.cause = err
		w.shut()
		p.say(slog.LevelWarn, "topogen: an instance has failed", u.errorAttrs(err)...)
		p.observeFault(func(o FaultObserver) { o.Failed(u.proc.Name, u.Index(), err) })
	}
	p.tellSupervisor(ChildEvent{Kind: kind, Child: w.child(), Err: err})
}

func (w *watch) child() Child { return Child{w.unit.proc.index, w.unit.Index()} }

// shut ends the instance as the pool knows it: it has no turns, and its Close is
// called, but where a goroutine that was abandoned is still in it.
func (w *watch) shut() {
	u := w.unit
	w.suspend()
	w.phase = watchDown
	w.dueAt, w.stop = 0, 0
	u.ping, u.serving = pingNone, false
	if !u.started {
		return
	}
	u.started = false
	if w.left {
		return
	}
	closed := make(chan struct{})
	w.closed = closed
	u.proc.pool.aside(func() {
		defer close(closed)
		if err := u.proc.pool.guard(u, "Close", u.cell.Close); err != nil {
			u.proc.pool.say(slog.LevelWarn, "topogen: an instance that has ended cannot be closed", slog.Any("error", err))
		}
	})
}

// aside calls something that may take long, on a goroutine of its own. Under a
// Stepper there is only one.
func (p *Pool) aside(call func()) {
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

// tellSupervisor tells the supervisor of an event, and passes on what it wants.
func (p *Pool) tellSupervisor(e ChildEvent) {
	p.supervision.Lock()
	defer p.supervision.Unlock()
	p.tellLocked(e)
}

// tellStopped answers the EffectStop with that number, unless the instance has
// ended otherwise meanwhile, which was the answer.
func (w *watch) tellStopped(number uint64) {
	p := w.unit.proc.pool
	p.supervision.Lock()
	defer p.supervision.Unlock()
	if w.stopping == number {
		p.tellLocked(ChildEvent{Kind: ChildStopped, Child: w.child()})
	}
}

// toStop is the number of the EffectStop that is not answered yet; 0: none.
func (w *watch) toStop() (number uint64) {
	p := w.unit.proc.pool
	p.supervision.Lock()
	defer p.supervision.Unlock()
	return w.stopping
}

func (p *Pool) tellLocked(e ChildEvent) {
	switch e.Kind {
	case TopologyStopping:
		p.startsNobody = true
	case ChildStopped, ChildFailed, ChildHung, ChildEnded, ChildNotStarted:
		p.processors[e.Child.Processor].watches[e.Child.Instance].stopping = 0
	}
	if p.spec.Supervisor == nil {
		switch e.Kind {
		case ChildFailed, ChildHung, ChildNotStarted:
			p.carryOut(ChildEffect{Kind: EffectEnd, Child: e.Child, Err: e.Err})
		case ChildEnded:
			p.carryOut(ChildEffect{Kind: EffectDone, Child: e.Child})
		}
		return
	}
	for _, f := range p.spec.Supervisor.Step(time.Duration(p.clock()), e) {
		p.carryOut(f)
	}
}

// carryOut passes on an effect. The caller holds the lock, so that the effects of
// two events do not mix.
func (p *Pool) carryOut(f ChildEffect) {
	if f.Kind == EffectEnd {
		p.finish(f.Err)
		return
	}
	proc := p.processors[f.Child.Processor]
	w := proc.watches[f.Child.Instance]
	now := p.clock()
	o := order{ChildEffect: f, at: now + min(int64(f.Delay), math.MaxInt64-now)}
	if f.Kind == EffectStop {
		w.stops++
		o.stop, w.stopping = w.stops, w.stops
	}
	w.orders = append(w.orders, o)
	if f.Kind == EffectStop {
		if cancel := w.endServe.Load(); cancel != nil {
			(*cancel)()
		}
	}
	w.unit.tell(controlOrder)
}

// obey does what the supervisor wants of u.
func (w *Worker) obey(u *Unit) {
	v := u.watch()
	w.pool.supervision.Lock()
	orders := v.orders
	v.orders = nil
	startsNobody := w.pool.startsNobody
	w.pool.supervision.Unlock()
	for _, o := range orders {
		if o.made != nil {
			w.made(v, o.made)
			continue
		}
		if o.silent {
			v.silenced()
			continue
		}
		if o.ended != nil {
			v.processEnded(o.ended)
			continue
		}
		switch o.Kind {
		case EffectWait:
			if v.phase == watchRunning { // a clean end
				v.shut()
			}
			v.dueAt = o.at
			u.wakeAt(o.at)
		case EffectStart:
			if v.phase == watchRunning {
				v.shut()
			}
			switch {
			case v.phase == watchMaking: // one that had said its end has failed after all: it was told to start twice
			case startsNobody && !bug.On(bug.StartAfterStop): // since the order was given
				w.pool.tellSupervisor(ChildEvent{Kind: ChildNotStarted, Child: v.child()})
			default:
				w.make(v)
			}
		case EffectStop:
			w.stopChild(v, o.stop)
		case EffectDone:
			if v.phase == watchRunning {
				v.endSource() // it still handles what comes
			} else {
				w.retire(v)
			}
		case EffectGiveUp:
			w.giveUp(v, o.Err)
		}
	}
}

// wake is when a unit is to look what it waits for is due. There is one for all
// of it, so that none is left behind by what is not waited for any more.
type wake struct {
	at    int64       // 0: never
	timer *time.Timer // under a Stepper its worker has an entry instead
}

// wakeAt has woken called at a time, or sooner.
func (u *Unit) wakeAt(at int64) {
	k := &u.proc.wakes[u.index]
	if k.at != 0 && k.at <= at {
		return
	}
	k.at = at
	p := u.proc.pool
	switch d := time.Duration(at - p.clock()); {
	case p.stepper != nil:
		p.stepper.wakeAt(u, at)
	case k.timer == nil:
		k.timer = time.AfterFunc(d, func() { u.tell(controlTimer) })
	default:
		k.timer.Reset(d)
	}
}

// stopWakes stops timers, which hold on to all of the topology.
func (p *Pool) stopWakes() {
	for _, proc := range p.processors {
		for i := range proc.wakes {
			if timer := proc.wakes[i].timer; timer != nil {
				timer.Stop()
			}
		}
	}
}

// SetAlarm has Alarm called at a time since the beginning. A later call changes
// it.
func (u *Unit) SetAlarm(at time.Duration) {
	b := &u.proc.boxes[u.index]
	if b.alarmAt == int64(at) {
		return
	}
	b.alarmAt = int64(at)
	u.wakeAt(b.alarmAt)
}

// woken does what is due at a time that u waited for.
func (w *Worker) woken(u *Unit) {
	now := w.pool.clock()
	k := &u.proc.wakes[u.index]
	if k.at == 0 || k.at > now {
		return
	}
	k.at = 0
	due := func(at *int64) bool {
		switch {
		case *at == 0:
			return false
		case *at > now:
			u.wakeAt(*at)
			return false
		}
		*at = 0
		return true
	}
	if u.proc.boxes != nil && due(&u.proc.boxes[u.index].alarmAt) {
		u.asked |= askAlarm
	}
	v := u.watch()
	if v == nil {
		return
	}
	if due(&v.dueAt) {
		w.pool.tellSupervisor(ChildEvent{Kind: ChildDue, Child: v.child()})
	}
	if due(&v.startBy) {
		w.startTooLong(v)
	}
	if due(&v.hangsTill) {
		w.pool.stepper.endHang(v)
	}
}

var (
	errNotRenewable = errors.New("pool: the instance cannot be made anew")
	errStartup      = errors.New("pool: the constructor and Init take longer than the startup timeout")
	errEnds         = errors.New("pool: the instance has come to its end")
)

// make makes another instance, on a goroutine of its own: a constructor may take
// long.
func (w *Worker) make(v *watch) {
	u := v.unit
	p := w.pool
	v.phase = watchMaking
	m := new(making)
	v.making = m
	if p.stepper != nil {
		m.adopt, m.err = p.renew(u)
		v.orders = append(v.orders, order{made: m})
		u.tell(controlOrder)
		return
	}
	if d := u.proc.Watch.Startup; d > 0 {
		v.startBy = p.clock() + int64(d)
		u.wakeAt(v.startBy)
	}
	closed := v.closed
	p.makers.Add(1)
	go func() {
		m.err = errEnded // if the constructor ends this goroutine
		defer func() {
			p.supervision.Lock()
			v.orders = append(v.orders, order{made: m})
			p.supervision.Unlock()
			u.tell(controlOrder)
			if m.over.CompareAndSwap(false, true) {
				p.makers.Done()
			}
		}()
		if closed != nil {
			<-closed
		}
		m.adopt, m.err = p.renew(u)
	}()
}

// renew makes another value for u.
func (p *Pool) renew(u *Unit) (adopt func(), err error) {
	defer func() {
		if cause := recover(); cause != nil {
			e := p.handlerError(u, nil, "Init", chain.OfPanic(cause))
			e.Stack = debug.Stack()
			p.record(e)
			err = e
		}
	}()
	adopt, err = u.cell.Renew(p.handlerCtx)
	if err != nil {
		e := p.handlerError(u, nil, "Init", err)
		p.record(e)
		return nil, e
	}
	return adopt, nil
}

// startTooLong gives up an instance that is being made.
func (w *Worker) startTooLong(v *watch) {
	m := v.making
	if v.phase != watchMaking || m == nil {
		return
	}
	m.late, v.making, v.phase, v.stop = true, nil, watchDown, 0
	p := w.pool
	v.unit.proc.faults.healthCheckKills.Add(1)
	v.unit.proc.faults.abandoned.Add(1)
	if p.abandonedNow.Add(1) > abandonedMax {
		p.finish(fmt.Errorf("%w: %d", ErrAbandoned, abandonedMax))
	}
	if m.over.CompareAndSwap(false, true) {
		p.makers.Done()
	}
	err := p.handlerError(v.unit, nil, "Init", errStartup)
	v.cause = err
	p.tellSupervisor(ChildEvent{Kind: ChildNotStarted, Child: v.child(), Err: err})
}

// made is told that an instance was made, or could not be.
func (w *Worker) made(v *watch, m *making) {
	p, u := w.pool, v.unit
	if v.making != m {
		if m.late {
			p.abandonedNow.Add(-1)
		}
		if v.making == nil {
			p.supervision.Lock()
			v.endSpare()
			p.supervision.Unlock()
		}
		return
	}
	v.making, v.startBy = nil, 0
	if m.err != nil {
		v.phase, v.cause, v.stop = watchDown, m.err, 0
		p.say(slog.LevelWarn, "topogen: an instance cannot be made anew", slog.String("processor", u.proc.Name), slog.Int("instance", u.Index()), slog.Any("error", m.err))
		p.tellSupervisor(ChildEvent{Kind: ChildNotStarted, Child: v.child(), Err: m.err})
		return
	}
	if v.left {
		v.renewLife()
	}
	m.adopt()
	v.killed.Store(false)
	v.failed.Store(false)
	v.left, v.phase = false, watchRunning
	u.started = true
	if v.letter != nil {
		letter := *v.letter
		v.letter = nil
		if u.cell.DeadLetter(letter) {
			u.proc.faults.deadLetters.Add(1)
		} else {
			u.proc.faults.dropped.Add(1)
		}
		u.out.publish(w)
		u.out.settle()
		u.proc.group.leave(nil)
	}
	u.proc.faults.restarts.Add(1)
	p.tellRestarted(u.proc)
	p.tellClosed(u)
	p.observeFault(func(o FaultObserver) { o.Restarted(u.proc.Name, u.Index()) })
	if v.stop != 0 {
		w.stopChild(v, v.stop)
		return
	}
	v.beginSource()
	v.resume()
	p.tellSupervisor(ChildEvent{Kind: ChildStarted, Child: v.child()})
	w.schedule(u)
}

// stopChild ends an instance that runs, as the supervisor wants.
func (w *Worker) stopChild(v *watch, number uint64) {
	switch {
	case v.phase == watchMaking, v.unit.out.served: // is seen to when that is over
		v.stop = number
		return
	case v.phase == watchRunning:
		v.shut()
	}
	closed := v.closed
	w.pool.aside(func() {
		if closed != nil {
			<-closed
		}
		v.tellStopped(number)
	})
}

// pingDone is told that Ping has said Done, or is not to be called any more since
// the topology stops.
func (w *watch) pingDone() {
	u := w.unit
	switch {
	case u.proc.pool.stopping.Load():
		u.ping = pingNone
		if u.proc.Ping {
			w.endSource()
		}
	case u.ping != pingNone:
		u.ping = pingNone
		w.end(ChildEnded, nil)
	}
}

// beginSource lets a new instance send of itself, unless the topology stops or its
// group has finished.
func (w *watch) beginSource() {
	u := w.unit
	if !u.proc.Ping && !u.proc.Serve {
		return
	}
	if u.proc.pool.stopping.Load() {
		w.endSource()
		return
	}
	if !w.source {
		w.source = u.proc.group.sourceBegins()
	}
	if w.source {
		u.serving = u.proc.Serve
		if u.proc.Ping {
			u.ping, u.idleExp = pingActive, 0
		}
	}
}

// endSource is told that the instance will send no more of itself.
func (w *watch) endSource() {
	if w.source {
		w.source = false
		w.unit.proc.group.sourceDone()
	}
}

// giveUp is told that the instance has failed for good.
func (w *Worker) giveUp(v *watch, err error) {
	u, p := v.unit, w.pool
	if v.phase == watchFailed {
		return
	}
	if err != nil {
		v.cause = err
	}
	p.say(slog.LevelError, "topogen: an instance has failed for good", slog.String("processor", u.proc.Name), slog.Int("instance", u.Index()),
		slog.Any("error", withoutStack(v.cause)))
	p.observeFault(func(o FaultObserver) { o.GaveUp(u.proc.Name, u.Index(), v.cause) })
	p.mu.Lock()
	p.failures = append(p.failures, fmt.Errorf("%w: %w", ErrGaveUp, v.cause))
	p.mu.Unlock()
	u.proc.faults.gaveUp.Add(1)
	v.gaveUp = true
	w.retire(v)
}

// fallSilent is told that something has ended of which an instance that is gone
// might have sent yet. When it is the last, its outputs are closed, behind the turn
// in which that was sent.
func (v *watch) fallSilent() {
	if v.phase != watchFailed || v.repeating > 0 {
		return
	}
	p := v.unit.proc.pool
	p.supervision.Lock()
	v.orders = append(v.orders, order{silent: true})
	p.supervision.Unlock()
	v.unit.tell(controlOrder)
}

// silenced closes the outputs of a processor of which nothing more will come. Where
// all instances of a group were given up, who receives from them need not wait for
// what still comes to them, and is discarded.
func (v *watch) silenced() {
	proc := v.unit.proc
	if v.phase != watchFailed {
		return // made anew with its group
	}
	v.failed.Store(true)
	if !slices.ContainsFunc(proc.units, func(u *Unit) bool { return !u.watch().failed.Load() }) {
		proc.pool.closeOutputs(func(e *edge) bool { return e.From == proc.index })
	}
	if v.gaveUp && int(proc.group.givenUp.Add(1)) == len(proc.group.units) {
		proc.group.closeOutputs()
	}
}

// retire is told that the instance is gone and that there will be no other. It
// has turns again, in which its messages are discarded.
func (w *Worker) retire(v *watch) {
	u := v.unit
	if v.phase == watchFailed {
		return
	}
	if v.phase == watchRunning || v.phase == watchMaking {
		v.shut()
	}
	v.phase, v.making, v.startBy, v.dueAt = watchFailed, nil, 0, 0
	if v.cause == nil {
		v.cause = errEnds
	}
	if v.letter != nil {
		v.letter = nil
		u.proc.faults.dropped.Add(1)
		u.proc.group.leave(nil)
	}
	v.fallSilent()
	v.resume()
	v.endSource()
	w.schedule(u)
}

// inputsDone tells the supervisor that all inputs of a group's instances are
// closed and drained.
func (g *group) inputsDone() {
	for _, u := range g.units {
		if w := u.watch(); w != nil {
			g.pool.tellSupervisor(ChildEvent{Kind: ChildInputsDone, Child: w.child()})
		}
	}
}
