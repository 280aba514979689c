package piper

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Stepper runs a whole topology in the goroutine that calls it, one handler call at a
// time and with a simulated clock. The seed determines what runs next: the same seed
// and the same messages from outside give the same trace.
//
// External senders may be used between steps. A send that would wait for room or for a
// reply runs steps until it need not wait. Serve runs as a coroutine that is resumed
// for one send at a time.
//
// A step must end before the next one begins. So a handler must not call the methods of
// the Stepper, Deliver, Ping, or an external sender that would wait.
type Stepper struct {
	mu         sync.Mutex
	pool       *Pool
	worker     *Worker
	runner     *runner
	random     *rand.Rand
	now        atomic.Int64 // time since the start in nanoseconds
	made       time.Time    // in real time
	serves     map[*Unit]*coroutine
	processes  []attached // that had not ended when commandEnds looked
	watching   bool       // the health check of processes runs
	serveUnits []*Unit    // units with Serve that is not done, in the order of the topology file
	err        error
	ended      bool
	begun      atomic.Bool
	inStep     atomic.Bool
	steps      uint64
	trace      func(step uint64, processor string, instance int)
}

type coroutine struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

// epoch is the start time of the clock of a Stepper.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// adoptNotes takes over the notes that external senders posted before.
func (s *Stepper) adoptNotes(w *Worker) {
	for n := w.inbox.takeAll(); n != nil; {
		next := n.next
		s.worker.inbox.push(n)
		n = next
	}
}

// Now is the time of the Stepper's clock. It starts with the year 2000.
func (s *Stepper) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return epoch.Add(time.Duration(s.now.Load()))
}

// Trace makes each step call f with the instance that runs.
func (s *Stepper) Trace(f func(step uint64, processor string, instance int)) { s.trace = f }

// Step makes one handler call or, if no handler can be called, advances the clock to
// the next timer. It returns false if the topology has ended or can only continue with
// messages from outside.
func (s *Stepper) Step() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.step(true)
}

// Run runs steps until the topology has ended, or can only continue with messages from
// outside or with a tick of a timer. It returns the error that ended the topology, or
// nil.
func (s *Stepper) Run() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.step(false) {
	}
	return s.err
}

// Advance advances the clock by d and runs everything that is due in this time.
func (s *Stepper) Advance(d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.now.Load() + int64(d)
	for {
		for s.turn() {
		}
		if at, ok := s.due(); s.ended || !ok || at > until {
			break
		}
		s.jump()
	}
	s.now.Store(max(s.now.Load(), until))
	return s.err
}

// Stop closes all inputs from outside, as the end of Run's context does.
func (s *Stepper) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	if !s.ended && !s.pool.stopping.Load() {
		s.pool.stop()
	}
}

// Close ends the topology at once, unless it has ended already: the contexts of handlers end,
// queued messages are dropped, Finish is not called, and all instances are closed. A test that
// may end early must call Close in a cleanup, because an instance can have goroutines, files or
// a process. Err returns the errors of the instances' Close.
func (s *Stepper) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun.Swap(true) {
		s.pool.makeContexts(context.Background())
		s.pool.prepare()
	}
	s.pool.lifecycle.end(nil)
	s.pool.cancelHandlers()
	s.end()
}

// Err is the error that ended the topology. It is nil while the topology runs.
func (s *Stepper) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// begin calls Init of all instances, once.
func (s *Stepper) begin() {
	if s.begun.Swap(true) {
		return
	}
	s.pool.makeContexts(context.Background())
	s.pool.prepare()
	if err := s.pool.lifecycle.initAll(nil); err != nil {
		s.pool.lifecycle.end(err)
		s.end()
		return
	}
	s.pool.schedule()
	if s.pool.unfinishedGroups == 0 {
		s.pool.lifecycle.end(nil)
	}
	if s.pool.durable != nil {
		s.pool.durable.Start()
	}
	s.end()
}

// end closes the instances if the topology has ended.
func (s *Stepper) end() {
	if s.ended || !s.pool.ended.Load() {
		return
	}
	s.ended = true
	// Serve may call t.FailNow, which must not keep the others from ending. serveUnits has an
	// order, unlike serves.
	var c executor
	for _, u := range s.serveUnits {
		if co := s.serves[u]; co != nil {
			c.run(0, co.stop, nil)
		}
	}
	c.end()
	s.err = s.pool.lifecycle.closeAll(s.pool.lifecycle.result())
	if s.pool.durable != nil {
		s.pool.durable.End()
	}
	s.pool.logbook.writeSkipped()
	s.pool.cancelHandlers()
}

// step makes one turn, or advances the clock. Unless always is set, it advances the
// clock only if the topology itself waits for the time to pass.
func (s *Stepper) step(always bool) bool {
	if s.turn() {
		return true
	}
	if _, ok := s.due(); s.ended || !ok || !always && !s.awaitsTime() {
		return false
	}
	s.jump()
	return true
}

// awaitsTime reports whether an idle Ping, a restart, a retry, or a tick of a group
// that holds work waits for the time to pass.
func (s *Stepper) awaitsTime() bool {
	if d := s.pool.durable; d != nil && d.AwaitsTime() {
		return true
	}
	for _, e := range s.worker.timers.heap {
		if e.kind == timerPing && e.unit.ping == pingIdle || e.kind == timerWake && waitsForTime(e.unit.watch()) ||
			e.kind == timerTick && e.unit.proc.group.isHeld() {
			return true
		}
	}
	return false
}

// jump advances the clock to the next timer, or to the next time at which something is due
// in the store of durable edges.
func (s *Stepper) jump() {
	at, _ := s.due()
	s.now.Store(max(s.now.Load(), at))
	s.worker.timers.fire()
	s.stepDurable()
}

// due returns when jump has something to do.
func (s *Stepper) due() (at int64, ok bool) {
	if len(s.worker.timers.heap) > 0 {
		at, ok = s.worker.timers.heap[0].at, true
	}
	if d := s.pool.durable; d != nil {
		if next, any := d.Next(); any && (!ok || int64(next) < at) {
			at, ok = int64(next), true
		}
	}
	return at, ok
}

// stepDurable passes the messages of durable edges that may be handled now to their
// instances.
func (s *Stepper) stepDurable() {
	if d := s.pool.durable; d != nil {
		for d.Step() {
		}
	}
}

// turn gives one instance a turn. It returns false if no instance has work.
func (s *Stepper) turn() (did bool) {
	s.begin()
	if s.ended || s.inStep.Load() {
		return false
	}
	if s.pool.ended.Load() { // between steps, by Nodes
		s.end()
		return false
	}
	s.inStep.Store(true)
	defer func() {
		s.inStep.Store(false)
		s.end()
	}()
	s.stepDurable()
	s.commandEnds()
	if s.pool.held.Load() {
		return false
	}
	s.worker.readNotes()
	ready := s.worker.runq.len()
	serves := s.resumable()
	if ready+len(serves) == 0 {
		return false
	}
	n := s.pick(ready + len(serves))
	var u *Unit
	if n < ready {
		u = s.worker.runq.popAt(n)
	} else {
		u = serves[n-ready]
	}
	s.steps++
	if s.trace != nil {
		s.trace(s.steps, u.proc.Name, u.Index())
	}
	if n < ready {
		s.guardedTurn(u)
	} else {
		s.resume(u)
	}
	s.worker.readNotes()
	return true
}

// guardedTurn is a turn whose panics end the topology, not the caller.
func (s *Stepper) guardedTurn(u *Unit) {
	returned := false
	defer func() {
		if !returned {
			cause := recover()
			if cause == nil {
				return // runtime.Goexit ends the goroutine of the caller, for example t.FailNow in a handler
			}
			s.handleCrash(s.runner, cause)
		}
	}()
	if w := s.runner.w; w.yield.Load() != 0 {
		w.clearYield()
	}
	s.runner.turn(u)
	returned = true
}

// waitsForTime reports whether the instance of w waits for the time to pass. w may be nil.
func waitsForTime(w *watch) bool {
	return w != nil && (w.restartAt != 0 || w.hangDeadline != 0 || w.attempts.dueAt != 0)
}

// pick returns a random number below n.
func (s *Stepper) pick(n int) int {
	if n == 1 {
		return 0
	}
	return s.random.IntN(n)
}

// choose handles messages of a random link of u, or returns true if Ping must be called
// instead.
func (s *Stepper) choose(r *runner, u *Unit) (ping bool) {
	pings := u.ping == pingActive
	if u.ready.first == nil || pings && s.random.IntN(2) == 0 {
		return pings
	}
	r.receive(u, u.ready.popAt(s.pick(u.ready.len())))
	return false
}

// resumable returns the units whose Serve may continue.
func (s *Stepper) resumable() []*Unit {
	var units []*Unit
	for _, u := range s.serveUnits {
		if u.serving && (s.pool.stopping.Load() || u.watch().mustStop() || !u.paused() && !u.proc.group.isFull()) {
			units = append(units, u)
		}
	}
	return units
}

// resume lets Serve continue to its next send or its end.
func (s *Stepper) resume(u *Unit) {
	c := s.serves[u]
	if c == nil {
		c = new(coroutine)
		c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
			c.yield = yield
			r := &runner{w: s.worker}
			returned := false
			defer func() {
				if cause := recover(); !returned {
					s.handleCrash(r, cause)
				}
			}()
			r.serve(u)
			returned = true
		})
		s.serves[u] = c
	}
	if _, ok := c.next(); !ok {
		u.serving = false
		delete(s.serves, u) // Serve may be started again
	}
}

// yield suspends Serve.
func (s *Stepper) yield(u *Unit) { s.serves[u].yield(struct{}{}) }

// stepUntil runs steps until the condition holds or nothing is left to do.
func (s *Stepper) stepUntil(holds func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !holds() && s.step(false) {
	}
}

var errNoRoom = errors.New("pool: the queue is full and the Stepper has nothing left to run")

func (s *Stepper) stepUntilRoom(x *External, t *Target) error {
	s.stepUntil(func() bool { return x.state.Load() != int32(externalOpen) || t.Head.Room() })
	if x.state.Load() == int32(externalOpen) && !t.Head.Room() {
		return fmt.Errorf("%w: %s", errNoRoom, s.pool.edgeName(t.Head.Index()))
	}
	return nil
}

// Deliver passes one queued message of an edge to its receiver. It returns false if no
// message of the edge can be handled now, for example because a message of another edge
// must be handled first. It returns ErrNoStepper unless the topology runs under a
// Stepper.
func (x *figures) Deliver(edge int) (bool, error) {
	s := x.pool.stepper
	if s == nil {
		return false, ErrNoStepper
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deliver(edge)
}

// ErrNoStepper is the error of Deliver and Ping if the topology does not run under a
// Stepper.
var ErrNoStepper = errors.New("pool: the topology does not run under a Stepper")

func (s *Stepper) deliver(edge int) (bool, error) {
	s.begin()
	s.worker.readNotes()
	for _, u := range s.pool.processors[s.pool.edges[edge].To].units {
		if s.ended || u.paused() {
			continue
		}
		for i, n := 0, u.ready.len(); i < n; i++ {
			l := u.ready.pop()
			full := l.entering && u.proc.group.isFull()
			if next, ok := nextEdge(l); full || !ok || next != edge {
				u.ready.push(l)
				continue
			}
			s.runAlone(u, func() { s.runner.receive(u, l) })
			return true, s.err
		}
	}
	return false, s.err
}

// nextEdge is the edge of the message that a link passes to a handler next.
func nextEdge(l *Link) (int, bool) { return l.NextOf(l.inlet) }

// Ping calls Ping once for each instance of a processor, except for instances that have
// returned Done. It returns ErrNoStepper unless the topology runs under a Stepper.
func (x *figures) Ping(processor int) error {
	p := x.pool
	s := p.stepper
	if s == nil {
		return ErrNoStepper
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	s.worker.readNotes()
	for _, u := range p.processors[processor].units {
		if s.ended || u.ping == pingNone || u.paused() {
			continue
		}
		u.ping = pingActive
		s.runAlone(u, func() { s.runner.ping(u) })
	}
	return s.err
}

// runAlone makes one call in u instead of a whole turn.
func (s *Stepper) runAlone(u *Unit, what func()) {
	if u.queued {
		s.worker.runq.drop(u)
		u.queued = false
	}
	r := s.runner
	if r.closing = u.closing; r.closing {
		u.proc.group.beginActivity()
	}
	s.worker.yield.Store(0)
	returned := false
	func() {
		defer func() {
			if !returned {
				if cause := recover(); cause != nil {
					s.handleCrash(s.runner, cause)
				}
			}
		}()
		what()
		returned = true
	}()
	if v := u.watch(); v == nil || v.hungCall == nil {
		u.out.publish(s.worker)
		u.out.settle()
		s.worker.schedule(u)
	}
	if r.closing { // otherwise handleCrash has left the group, or the call hangs
		r.closing = false
		u.proc.group.endActivity(nil)
	}
	s.worker.readNotes()
	s.end()
}
