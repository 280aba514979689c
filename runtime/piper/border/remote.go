package border

import (
	"sync"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/queue"
)

// remoteInstance is the state of an instance that another node runs. Its unit takes the messages
// for the instance from their queues and passes them to Nodes. They count as queued
// until that node has handled them.
type remoteInstance struct {
	mu          sync.Mutex
	settlements []settlement // not counted yet, oldest first
}

// settlement says what became of the oldest n messages that an Outlet has passed on.
type settlement struct {
	outlet *Outlet
	n      int
	err    error // why they were dropped; nil if they were handled
}

// remoteOf is the state of a unit that IsRemote. Most of many instances never get a message from
// this node, so the first call makes it.
func (b *Border) remoteOf(u *piper.Unit) *remoteInstance {
	at := &b.remotes[u.Processor()][u.Index()]
	if a := at.Load(); a != nil {
		return a
	}
	at.CompareAndSwap(nil, new(remoteInstance))
	return at.Load()
}

// Settle says what became of the oldest n messages that were not settled yet: they were
// handled, or, with an error, dropped. Any goroutine may call it.
func (o *Outlet) Settle(n int, dropped error) {
	o.settling.Add(uint64(n))
	a := o.border.remoteOf(o.unit)
	a.mu.Lock()
	a.settlements = append(a.settlements, settlement{o, n, dropped})
	a.mu.Unlock()
	o.unit.SignalSettle()
}

// Settle implements piper.Border. It counts the messages of all settlements.
func (b *Border) Settle(u *piper.Unit) {
	a := b.remoteOf(u)
	a.mu.Lock()
	list := a.settlements
	a.settlements = nil
	a.mu.Unlock()
	for _, s := range list {
		s.outlet.link.Settle(func() { s.outlet.count(s) })
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
func (o *Outlet) count(s settlement) {
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
}

func (o *Outlet) settleRun(run *passed, n int, err error) {
	run.queue.Settle(n)
	o.resolveCalls(n, err)
	if err != nil {
		o.border.CountDiscarded(run.head.Index(), n)
	}
}
