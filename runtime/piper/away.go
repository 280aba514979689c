package piper

import (
	"sync"

	"github.com/topogen/topogen/runtime/queue"
)

// away is the state of an instance that another node runs. Its unit takes the messages
// for the instance from their queues and passes them to Nodes. They count as queued
// until that node has handled them.
type away struct {
	unit *Unit

	mu          sync.Mutex
	settlements []settlement // not counted yet, oldest first
}

// settlement says what became of the oldest n messages that an Outlet has passed on.
type settlement struct {
	outlet *Outlet
	n      int
	err    error // why they were dropped; nil if they were handled
}

// settle adds a settlement. Any goroutine may call it.
func (a *away) settle(s settlement) {
	a.mu.Lock()
	a.settlements = append(a.settlements, s)
	a.mu.Unlock()
	a.unit.signal(controlSettle)
}

// settleAll counts the messages of all settlements. It is called on the goroutine of the
// unit's worker.
func (w *Worker) settleAll(u *Unit) {
	a := u.away()
	if a == nil {
		return
	}
	a.mu.Lock()
	list := a.settlements
	a.settlements = nil
	a.mu.Unlock()
	for _, s := range list {
		s.outlet.count(s, w)
	}
	if u.closing { // the queues may be empty now
		u.proc.group.enter()
		u.proc.group.leave(nil)
	}
}

// settler is a queue whose messages were passed to another node: a *queue.Head or a
// *queue.Latest.
type settler interface{ Settle(n int) }

// passed are messages of one queue that were passed on one after the other.
type passed struct {
	queue settler
	head  *queue.Head
	n     int
}

// count counts the messages of a settlement.
func (o *Outlet) count(s settlement, w *Worker) {
	o.link.setLocal(w) // the sender may have moved since the last turn of the link
	for n := s.n; n > 0; {
		run := &o.passed[o.firstPassed]
		k := min(n, run.n)
		o.settleRun(run, k, s.err)
		n -= k
		if run.n -= k; run.n == 0 {
			*run = passed{}
			o.firstPassed++
		}
	}
	if o.firstPassed > len(o.passed)/2 {
		o.passed = o.passed[:copy(o.passed, o.passed[o.firstPassed:])]
		o.firstPassed = 0
	}
	o.link.reportRoom(w)
	if !o.link.empty() {
		w.makeReady(o.link)
	}
}

func (o *Outlet) settleRun(run *passed, n int, err error) {
	run.queue.Settle(n)
	o.resolveCalls(n, err)
	if err != nil {
		o.unit.proc.pool.edges[run.head.Index()].discarded.Add(uint64(n))
	}
}
