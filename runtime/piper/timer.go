package piper

import (
	"sync/atomic"
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

const (
	idleWaitMin    = time.Millisecond       // pause after a Ping that returned Idle
	idleWaitExpMax = 14                     // the pause doubles up to idleWaitMax, or idleWaitEach for each timer of the worker times the number of workers
	idleWaitMax    = 100 * time.Millisecond // up to 2,000 timers on all workers
	idleWaitEach   = 50 * time.Microsecond  // so a topology calls at most 20,000 idle Pings a second, which takes a few percent of a CPU
)

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

// timers are the timers of a worker, which share one Go timer.
type timers struct {
	worker  *Worker
	heap    timerHeap
	timer   *time.Timer // set to the earliest entry
	armedAt int64       // when timer fires; 0 means never
	note    note
	firing  atomic.Bool // note is in the inbox
}

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

// add adds an entry.
func (s *timers) add(e timerEntry) {
	s.heap.push(e)
	s.arm()
}

// after schedules the ticker at d from now.
func (s *timers) after(d time.Duration, t *Ticker) {
	s.add(timerEntry{at: s.worker.pool.clock() + int64(d), unit: t.to, ticker: t})
}

// pingLater schedules the next call of u's idle Ping: in 1 ms, doubling up to 100 ms, or longer
// if the worker has thousands of timers.
// If a call is already scheduled that is not later, it does nothing, so that a Ping
// that returns Idle after each message does not read the clock.
func (s *timers) pingLater(u *Unit) {
	if u.pingAt == 0 || u.pingAtExp > u.idleExp {
		d := min(idleWaitMin<<u.idleExp, max(idleWaitMax, time.Duration(len(s.heap)*len(s.worker.pool.workers))*idleWaitEach))
		u.pingAt, u.pingAtExp = s.worker.pool.clock()+int64(d), u.idleExp
		s.add(timerEntry{at: u.pingAt, unit: u, kind: timerPing})
	}
	u.idleExp = min(u.idleExp+1, idleWaitExpMax)
}

// arm sets the worker's Go timer to the earliest entry.
func (s *timers) arm() {
	if s.worker.pool.stepper != nil || len(s.heap) == 0 {
		return
	}
	at := s.heap[0].at
	if s.armedAt != 0 && s.armedAt <= at {
		return
	}
	s.armedAt = at
	d := time.Duration(at - s.worker.pool.clock())
	if s.timer == nil {
		s.timer = time.AfterFunc(d, func() {
			if s.firing.CompareAndSwap(false, true) {
				s.worker.post(&s.note)
			}
		})
	} else {
		s.timer.Reset(d)
	}
}

// disarm stops the worker's Go timer, which refers to the whole topology.
func (s *timers) disarm() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// fire processes the entries that are due.
func (s *timers) fire() {
	s.armedAt = 0
	now := s.worker.pool.clock()
	for len(s.heap) > 0 && s.heap[0].at <= now {
		e := s.heap.pop()
		if e.kind == timerIdleLinks {
			s.worker.idleLinks.look(e, now)
			continue
		}
		switch here := e.unit.worker.Load() == s.worker; {
		case e.kind == timerTick:
			s.tick(e, now)
		case e.kind == timerPing && here:
			s.pingDue(e.unit, now)
		case e.kind == timerPing:
			e.unit.signal(controlPing)
		default:
			e.unit.signal(controlTimer)
		}
	}
	s.arm()
}

// pingDue calls an idle Ping again, unless the timer was set before a later message.
func (s *timers) pingDue(u *Unit, now int64) {
	if u.pingAt == 0 || now < u.pingAt {
		return
	}
	u.pingAt = 0
	if u.ping == pingIdle {
		u.ping = pingActive
		s.worker.schedule(u)
	}
}

func (s *timers) tick(e timerEntry, now int64) {
	t := e.ticker
	g := t.to.proc.group
	g.beginActivity()
	defer g.endActivity(nil)
	due, goOn := g.ticks()
	if !due {
		if goOn {
			e.at += int64(t.every) * (1 + (now-e.at)/int64(t.every))
			s.heap.push(e)
		}
		return
	}
	t.n++
	if t.slot.Offer(topo.Tick{Time: s.worker.pool.time(e.at), N: t.n}) {
		t.notify(s.worker)
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
	s.heap.push(e)
}
