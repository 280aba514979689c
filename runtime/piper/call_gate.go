package piper

import (
	"sync"
	"sync/atomic"
	"time"
)

// callGate stops the calls of user code while a node cannot prove that it may make them. A closed
// gate takes effect before the next call: the workers sleep, and the messages stay in their
// queues. Calls that run go on. When the gate opens, everything continues where it was. The
// end of Run does not wait for the gate.
//
// Pool.held says whether the gate is closed, and is set before the yield flags of the workers.
// A worker looks at held before each turn, and generated code looks at the flag before each call.
type callGate struct {
	pool  *Pool
	until atomic.Int64 // clock of the pool at which the gate closes; 0: never

	mu     sync.Mutex
	opened chan struct{} // closed when the gate opens; nil before it is closed for the first time
	timer  *time.Timer
	asleep int // workers that wait for it
}

// close closes the gate.
func (g *callGate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closeLocked()
}

func (g *callGate) closeLocked() {
	p := g.pool
	if p.held.Load() {
		return
	}
	g.opened = make(chan struct{})
	p.held.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.interrupt()
}

// open opens the gate until a time; the zero time is no limit.
func (g *callGate) open(until time.Time) {
	p := g.pool
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
	}
	g.until.Store(0)
	if !until.IsZero() {
		left := time.Until(until)
		if left <= 0 {
			g.closeLocked()
			return
		}
		g.until.Store(int64(until.Sub(p.began)))
		if g.timer == nil {
			g.timer = time.AfterFunc(left, g.look)
		} else {
			g.timer.Reset(left)
		}
	}
	if p.held.Load() {
		p.held.Store(false)
		close(g.opened)
	}
}

// look closes the gate if its time has come. It is called by the timer, and where a goroutine of the
// pool may have been stopped: the timer of a process that continues can be late.
func (g *callGate) look() {
	until := g.until.Load()
	if until == 0 || g.pool.held.Load() || g.pool.clock() < until {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := g.until.Load(); until != 0 && g.pool.clock() >= until {
		g.closeLocked()
	}
}

// stop ends the timer, which refers to the whole topology.
func (g *callGate) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
	}
}

// wait waits until the gate is open, the pool has ended, or a channel that may be nil is closed.
func (g *callGate) wait(over <-chan struct{}) {
	if !g.pool.held.Load() || g.pool.stepper != nil {
		return
	}
	g.mu.Lock()
	opened := g.opened
	g.asleep++
	g.mu.Unlock()
	select {
	case <-opened:
	case <-g.pool.done:
	case <-over:
	}
	g.mu.Lock()
	g.asleep--
	g.mu.Unlock()
}

// interrupt ends the turns that run after their current call. The lock of the pool must be held.
func (p *Pool) interrupt() {
	for _, w := range p.workers {
		w.yield.Or(yieldAsked)
	}
	for _, w := range p.solos {
		w.yield.Or(yieldAsked)
	}
}

// CloseGate stops the calls of user code: no handler, Ping, Init or timer begins before OpenGate. A call
// that runs goes on.
func (in Interior) CloseGate() { in.pool.calls.close() }

// OpenGate lets the pool call user code until a time, by the monotonic clock, or until CloseGate. The zero
// time is no limit. A pool that runs under a Stepper has no limit.
func (in Interior) OpenGate(until time.Time) { in.pool.calls.open(until) }

// LookAtGate closes the gate if its time has come. Nodes calls it before it passes on messages.
func (in Interior) LookAtGate() { in.pool.calls.look() }
