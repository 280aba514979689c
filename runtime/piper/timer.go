package piper

import (
	"time"

	"github.com/topogen/topogen/runtime/queue"
	"github.com/topogen/topogen/runtime/topo"
)

// Ticker is the link from a timer to an instance. Generated code embeds it. It holds
// one tick. If a tick is due while one is queued, it is skipped and counted.
type Ticker struct {
	Link
	slot  queue.Slot[topo.Tick]
	every time.Duration
	n     uint64
}

// Start makes the timer of an edge tick for the unit to, from the start of Run.
func (t *Ticker) Start(in Inlet, to *Unit, edge int) {
	t.slot.Head.Init(edge, 1, &t.Link)
	t.Join(in, nil, to, &t.slot.Head)
	p := to.proc.pool
	t.every = p.edges[edge].Every
	p.tickers = append(p.tickers, t)
}

// Take removes the queued tick.
func (t *Ticker) Take() (topo.Tick, bool) { return t.slot.Pop() }

// Discard counts the tick that Take has removed as dropped, because its instance is not
// restarted.
func (t *Ticker) Discard() { t.to.proc.pool.edges[t.slot.Head.Index()].discarded.Add(1) }

// timerEntry is an entry of a worker's timers.
type timerEntry struct {
	at     int64 // time in nanoseconds since the pool was started
	unit   *Unit
	ticker *Ticker // for timerTick
	kind   timerKind
}

type timerKind uint8

const (
	timerTick      timerKind = iota
	timerPing                // the pause of an idle Ping ends
	timerWake                // under a Stepper: the wakeup of a unit
	timerIdleLinks           // links may have been idle for some time
)

// timerHeap is a binary heap, earliest entry first.
type timerHeap []timerEntry

func (h *timerHeap) push(e timerEntry) {
	*h = append(*h, e)
	s := *h
	s.up(len(s) - 1)
}

// up moves an entry to its position after its time became earlier.
func (h timerHeap) up(i int) {
	for ; i > 0 && h[i].at < h[(i-1)/2].at; i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (h *timerHeap) pop() timerEntry {
	s := *h
	e, last := s[0], len(s)-1
	s[0], s[last] = s[last], timerEntry{}
	s = s[:last]
	*h = s
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s); child++ {
			if s[child].at < s[least].at {
				least = child
			}
		}
		if least == i {
			return e
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}

// after schedules the ticker at d from now.
func (w *Worker) after(d time.Duration, t *Ticker) {
	w.timers.push(timerEntry{at: w.pool.clock() + int64(d), unit: t.to, ticker: t})
	w.arm()
}

// pingLater schedules the next call of u's idle Ping: in 1 ms, doubling up to 100 ms, or longer
// if the worker has thousands of timers.
// If a call is already scheduled that is not later, it does nothing, so that a Ping
// that returns Idle after each message does not read the clock.
func (w *Worker) pingLater(u *Unit) {
	if u.pingAt == 0 || u.pingAtExp > u.idleExp {
		d := min(idleWaitMin<<u.idleExp, max(idleWaitMax, time.Duration(len(w.timers)*len(w.pool.workers))*idleWaitEach))
		u.pingAt, u.pingAtExp = w.pool.clock()+int64(d), u.idleExp
		w.timers.push(timerEntry{at: u.pingAt, unit: u, kind: timerPing})
		w.arm()
	}
	u.idleExp = min(u.idleExp+1, idleWaitExpMax)
}

// arm sets the worker's Go timer to the earliest entry.
func (w *Worker) arm() {
	if w.pool.stepper != nil || len(w.timers) == 0 {
		return
	}
	at := w.timers[0].at
	if w.armedAt != 0 && w.armedAt <= at {
		return
	}
	w.armedAt = at
	d := time.Duration(at - w.pool.clock())
	if w.timer == nil {
		w.timer = time.AfterFunc(d, func() {
			if w.firing.CompareAndSwap(false, true) {
				w.post(&w.timerNote)
			}
		})
	} else {
		w.timer.Reset(d)
	}
}

// disarm stops the worker's Go timer, which refers to the whole topology.
func (w *Worker) disarm() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// fireTimers processes the entries that are due.
func (w *Worker) fireTimers() {
	w.armedAt = 0
	now := w.pool.clock()
	for len(w.timers) > 0 && w.timers[0].at <= now {
		e := w.timers.pop()
		if e.kind == timerIdleLinks {
			w.lookAtIdle(e, now)
			continue
		}
		switch here := e.unit.worker.Load() == w; {
		case e.kind == timerTick:
			w.tick(e, now)
		case e.kind == timerPing && here:
			w.pingDue(e.unit, now)
		case e.kind == timerPing:
			e.unit.signal(controlPing)
		default:
			e.unit.signal(controlTimer)
		}
	}
	w.arm()
}

// pingDue calls an idle Ping again, unless the timer was set before a later message.
func (w *Worker) pingDue(u *Unit, now int64) {
	if u.pingAt == 0 || now < u.pingAt {
		return
	}
	u.pingAt = 0
	if u.ping == pingIdle {
		u.ping = pingActive
		w.schedule(u)
	}
}

func (w *Worker) tick(e timerEntry, now int64) {
	t := e.ticker
	g := t.to.proc.group
	g.enter()
	defer g.leave(nil)
	due, goOn := g.ticks()
	if !due {
		if goOn {
			e.at += int64(t.every) * (1 + (now-e.at)/int64(t.every))
			w.timers.push(e)
		}
		return
	}
	t.n++
	if t.slot.Offer(topo.Tick{Time: w.pool.time(e.at), N: t.n}) {
		t.notify(w)
	}
	// Ticks are due at multiples of the period, so a late tick does not delay the next
	// ones. Ticks that were missed during a long pause are skipped and counted.
	e.at += int64(t.every)
	if e.at <= now {
		missed := (now-e.at)/int64(t.every) + 1
		t.n += uint64(missed)
		t.slot.Head.RefuseMany(uint64(missed))
		e.at += missed * int64(t.every)
	}
	w.timers.push(e)
}
