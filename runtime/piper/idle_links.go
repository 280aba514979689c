package piper

import (
	"math"
	"time"
)

// A link whose queues stay empty is released: its queues give back their segments, and it leaves the table of
// its sender and the list of its receiver. So memory grows with the pairs of instances that exchange messages now.
// A pair that is quiet costs none. A later message makes a new link.
//
// The queues have two ends, so there are three steps:
//
//  1. The worker of the receiver leaves the segments, and asks the worker of the sender.
//  2. If the sender has sent nothing since then, its worker frees the segments and removes the link from the
//     table. Now no message can come.
//  3. The worker of the receiver removes the link from its list, and adds its counts to those of the edge.
//
// If both instances have the same worker, it does all of them at once.

const (
	// idleLinkPeriod is how often a worker releases the links that took no message since they were listed. A link
	// of a flow with shorter pauses is listed again, except in its first period.
	idleLinkPeriod  = time.Second
	idleLinksMax    = 1 << 16 // links that a worker lists before it releases the first ones even earlier: about 50 MB
	idleLinkLooks   = 256     // links that a worker looks at before its next turn: some 50 µs
	goneLinksFactor = 16      // a worker walks the links of a receiver once for each 16th of them that is gone
)

// idleLink is a link whose queues were empty.
type idleLink struct {
	link  *Link
	taken uint64 // number of messages that its queues had passed to handlers
	stay  uint16 // of the receiver, see Unit.stay
}

// idleLinks are the links of a worker's instances whose queues were empty.
type idleLinks struct {
	worker *Worker
	listed []idleLink // since the last period began
	due    []idleLink // before the last period began; those up to next were looked at
	next   int
	endsAt int64 // end of the period
	wakeAt int64 // of the entry in the worker's timers; 0: none
}

// rewind makes the queues of a link begin at their first slots again, see queue.Head.
func (l *Link) rewind() {
	for _, h := range l.heads {
		h.Rewind()
	}
}

// list makes the worker of l's receiver look after some time whether the queues of l are still empty.
func (i *idleLinks) list(l *Link) {
	if i.worker.index < 0 {
		return
	}
	if i.worker.stepped {
		i.releaseSome(l)
		return
	}
	l.idleIn = l.to.stay()
	i.listed = append(i.listed, idleLink{l, l.taken(), l.idleIn})
	if i.wakeAt == 0 {
		i.endsAt = i.worker.pool.clock() + int64(i.worker.pool.idleLinkPeriod)
		i.wakeWorker(i.endsAt)
	} else if len(i.listed) == idleLinksMax && i.next == len(i.due) {
		i.endsAt = i.worker.pool.clock()
		i.wakeWorker(i.endsAt)
	}
}

// listAll lists all links to u.
func (i *idleLinks) listAll(u *Unit) {
	for l := u.inlinks.Load(); l != nil; l = l.nextIn.Load() {
		if l.idleIn != u.stay() {
			i.list(l)
		}
	}
}

// wakeWorker makes the worker call look at the given time.
func (i *idleLinks) wakeWorker(at int64) {
	i.wakeAt = at
	i.worker.timers.add(timerEntry{at: at, kind: timerIdleLinks})
}

// releaseSome releases links without a delay, under a Stepper.
func (i *idleLinks) releaseSome(l *Link) {
	const oneIn = 4
	if i.next++; i.next%oneIn == 0 && !l.listed && (l.out == nil || !l.out.calling) {
		i.release(l)
	}
}

// look releases links that were not used for a period.
func (i *idleLinks) look(e timerEntry, now int64) {
	if e.at != i.wakeAt {
		return // there is a newer entry
	}
	if i.next == len(i.due) && i.endsAt <= now {
		i.listed, i.due, i.next = nil, i.listed, 0
		i.endsAt = now + int64(i.worker.pool.idleLinkPeriod)
	}
	for looks := 0; looks < idleLinkLooks && i.next < len(i.due); looks++ {
		e := &i.due[i.next]
		i.next++
		i.lookAt(e)
		*e = idleLink{}
	}
	switch {
	case i.next < len(i.due):
		i.wakeWorker(now + 1)
	case len(i.listed) >= idleLinksMax:
		i.endsAt = now + 1
		fallthrough
	case len(i.listed) > 0:
		i.due, i.next = nil, 0
		i.wakeWorker(i.endsAt)
	default:
		*i = idleLinks{worker: i.worker}
	}
}

func (i *idleLinks) lookAt(e *idleLink) {
	l := e.link
	if l.to.worker.Load() != i.worker {
		l.notify(i.worker) // the other worker lists the link after its next turn
		return
	}
	switch stay := l.to.stay(); {
	case l.gone.Load():
		i.removeGone(l)
	case l.idleIn == stay && e.stay != stay: // the receiver came back, and the link was listed again
	case l.idleIn == stay && e.taken == l.taken() && !l.listed && l.isQuiet():
		i.release(l)
	default:
		i.list(l)
	}
}

// release begins to release a link whose queues are empty.
func (i *idleLinks) release(l *Link) {
	l.idleIn = 0
	if i.worker.pool.border != nil || l.out == nil {
		l.dropSpares() // in a cluster other goroutines than workers send, too
		return
	}
	if !l.leave() {
		return
	}
	if home := l.out.unit.worker.Load(); home == i.worker {
		i.trim(l)
	} else {
		l.asked.Store(true)
		if l.wantRoom.CompareAndSwap(false, true) && home.post(&l.roomNote) {
			i.worker.wokeAnother = true
		}
	}
}

// leave makes the receiver leave the segments of the queues. It reports whether all messages were handled.
func (l *Link) leave() bool {
	settled := true
	for _, h := range l.heads {
		settled = h.Leave() && settled
	}
	return settled
}

// trim frees the segments of a link that the sender has not used since the receiver has left them, and
// removes the link from the table of the sender. The worker of the sender calls it.
func (i *idleLinks) trim(l *Link) {
	if l.dirty || l.gone.Load() {
		return
	}
	for _, h := range l.heads {
		if h.Full() && i.worker.pool.edges[h.Index()].Full != Wait {
			h.Drained() // no sender waits: a send to this queue drops or fails
		}
		if !h.Unused() {
			return
		}
	}
	for _, h := range l.heads {
		h.Trim()
	}
	if l.table == nil {
		return
	}
	l.table.remove(l.to.Index())
	l.table = nil
	l.gone.Store(true)
	if l.to.worker.Load() == i.worker {
		i.removeGone(l)
	} else {
		l.notify(i.worker)
	}
}

// removeGone removes links that no message can enter any more from the list of l's receiver, if there may be
// enough of them: their number is not known exactly. l is one of them.
func (i *idleLinks) removeGone(l *Link) {
	u := l.to
	if u.goneLinks++; u.goneLinks < u.sweepAt {
		return
	}
	p := i.worker.pool
	if !p.figuresMu.TryRLock() { // a goroutine sums the counts of links
		u.goneLinks--
		i.list(l)
		return
	}
	defer p.figuresMu.RUnlock()
	u.goneLinks = 0
	kept := 0
	var before *Link
	for l := u.inlinks.Load(); l != nil; l = l.nextIn.Load() {
		switch {
		case !l.gone.Load():
			before = l
			kept++
			continue
		case before != nil:
			before.nextIn.StoreRelease(l.nextIn.Load())
		case !u.inlinks.CompareAndSwap(l, l.nextIn.Load()):
			for before = u.inlinks.Load(); before.nextIn.Load() != l; { // there are new links before l
				before = before.nextIn.Load()
			}
			before.nextIn.StoreRelease(l.nextIn.Load())
		}
		l.addCounts()
	}
	u.sweepAt = uint16(min(kept/goneLinksFactor, math.MaxUint16))
}

// addCounts adds the counts of a link to those of its edges and its receiver.
func (l *Link) addCounts() {
	for _, h := range l.heads {
		e := &l.to.proc.pool.edges[h.Index()]
		e.goneSent.Add(h.Sent())
		e.goneTaken.Add(h.Taken())
		e.goneDropped.Add(h.Dropped())
		l.to.goneTaken += h.Taken()
	}
}

// isQuiet reports whether no message of l waits for the receiver. Those that were passed on to another node
// still count as queued, maybe for long, but need no segments. Only the receiver calls it.
func (l *Link) isQuiet() bool {
	if !l.to.remote {
		return l.empty()
	}
	more, _ := l.rest()
	return !more
}

// dropSpares drops the spare segments of the queues of l. Only the receiver calls it.
func (l *Link) dropSpares() {
	for _, h := range l.heads {
		h.DropSpares()
	}
}

// taken is the number of messages that the queues of l have passed to handlers.
func (l *Link) taken() (n uint64) {
	for _, h := range l.heads {
		n += h.Taken()
	}
	return n
}
