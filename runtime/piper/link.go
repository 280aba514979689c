package piper

import (
	"reflect"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/internal/count"
	"github.com/topogen/topogen/runtime/queue"
)

// Link joins a sending instance (or an external sender, or a timer) to a
// receiving one. Generated code embeds it beside the queues of the pair's edges.
type Link struct {
	inlet Inlet
	out   *Out // of the instance that sends; nil for timers and external senders
	to    *Unit
	gate  *Gate // of an external sender
	heads []*queue.Head

	// The receiver's, in a cache line of their own.
	nextIn    *Link // in its list of all
	nextReady *Link // in its list of ready or gated ones
	listed    bool  // in its ready or gated list
	local     bool  // both ends are on its worker
	wantRoom  atomic.Bool
	edge      int32 // of the message that is being handled
	hops      int32 // turns since the rebalancer looked, from samples, half of them forgotten each time
	roomNote  note  // in an inbox while wantRoom is set

	// The sender's, in a cache line of their own too.
	nextDirty *Link         // in its list of unpublished ones
	number    count.Count   // of the next message; expose reads it
	bound     atomic.Uint64 // numbers below it are visible
	dirty     bool          // in its list
	inCycle   bool          // both ends are in one group
	entering  bool          // leads from outside into a cyclic group
	ordered   bool          // several edges: messages are numbered
	posted    atomic.Bool
	readyNote note // in an inbox while posted is set
}

// LinkOf is a link of one queue, of type Q.
type LinkOf[Q any] struct {
	Link  Link
	Queue Q
}

// Join makes link, which is new, lead from the sender o to the unit to. It points to a
// LinkOf whose queue is that of an edge, and drain hands over its messages. Code that is
// made for each edge of a topology is little because Join looks at link by reflection.
func (o *Out) Join(to *Unit, link any, edge, capacity int, drain Drain) {
	v := reflect.ValueOf(link).Elem()
	l := v.Field(0).Addr().Interface().(*Link)
	l.Join(drain, o, to, queue.Init(v.Field(1).Addr().Interface(), edge, capacity, l))
}

// Join makes l lead from the sender out to the unit to; first and more are the heads
// of its queues. Most links have one, for which the caller makes no slice.
func (l *Link) Join(in Inlet, out *Out, to *Unit, first *queue.Head, more ...*queue.Head) {
	l.inlet, l.to = in, to
	l.heads = append(append(make([]*queue.Head, 0, 1+len(more)), first), more...)
	l.out = out
	l.edge = int32(first.Index())
	l.ordered = len(more) > 0
	group := to.proc.group
	l.inCycle = out != nil && out.unit.proc.group == group
	l.entering = !l.inCycle && group.cyclic
	l.readyNote = note{kind: noteReady, link: l}
	l.roomNote = note{kind: noteRoom, link: l}
	for {
		first := to.inlinks.Load()
		l.nextIn = first
		if to.inlinks.CompareAndSwap(first, l) {
			return
		}
	}
}

// From is the sending instance's index.
func (l *Link) From() int { return int(l.out.unit.index) }

// Number returns the number of the next message of an ordered link.
func (l *Link) Number() uint64 {
	n := l.number.Own()
	l.number.StoreRelease(n + 1)
	return n
}

// Bound is the number below which all messages are visible: the receiver takes
// those, lowest first, and so sees every message after all that were sent
// before it, whatever edge they travel along.
func (l *Link) Bound() uint64 { return l.bound.Load() }

// Handling tells which edge the message belongs to that is handled next; an
// error of the handler names it.
func (l *Link) Handling(edge int) { l.edge = int32(edge) }

// Touched, Filled and Overfull make a Link the queue.Listener of its queues.
func (l *Link) Touched(h *queue.Head) (inTurn bool) {
	switch {
	case l.out == nil:
	case !l.out.calling && !bug.On(bug.LateSendUnseen):
		l.out.unit.proc.pool.lateSend(l, h)
		return false
	case !l.dirty:
		l.dirty = true
		l.nextDirty = l.out.dirty.Own()
		l.out.dirty.StoreRelease(l)
	}
	return true
}

func (l *Link) Filled(h *queue.Head) {
	if l.out == nil {
		return // an external sender looks for room before each message
	}
	o := l.out
	if o.unit.proc.pool.edges[h.Index()].Full != Wait || bug.On(bug.FullIgnored) {
		return // the send itself drops or fails
	}
	o.filled.Push(h)
	if l.inCycle {
		l.to.proc.group.full.Add(1)
	} else {
		o.full++
	}
	if w := o.unit.worker.Load(); w != nil {
		w.hold.Or(holdFull)
	}
}

func (l *Link) Overfull(h *queue.Head) {
	if l.inCycle {
		if depth := h.Depth(); depth >= l.to.proc.pool.cycleLimit(h) {
			l.to.proc.group.failGrowing(l, h, depth)
		}
	}
}

// publish makes visible what was put; w is the worker of the caller, nil where
// it has none.
func (l *Link) publish(w *Worker) {
	local := w != nil && l.to.worker.Load() == w // only this goroutine could move it away
	for _, h := range l.heads {
		h.Publish(local)
	}
	if l.ordered {
		l.bound.Store(l.number.Own())
	}
	if local {
		w.makeReady(l)
	} else {
		l.notify(w)
	}
}

// expose makes visible what was put, on any goroutine but the sender's. Where
// messages are numbered, it is all of them or none: the last number may be that of
// a message which is not yet in its queue.
func (l *Link) expose() {
	written := make([]uint64, len(l.heads))
	number, sum := l.number.Load(), uint64(0)
	for i, h := range l.heads {
		written[i] = h.Written()
		sum += written[i]
	}
	if l.ordered && (sum != number || l.number.Load() != number) {
		return
	}
	exposed := false
	for i, h := range l.heads {
		exposed = h.Expose(written[i]) || exposed
	}
	if l.ordered {
		l.bound.Store(number)
	}
	if exposed {
		l.notify(nil)
	}
}

// setLocal tells the queues whether sender and receiver run on w both.
func (l *Link) setLocal(w *Worker) {
	local := l.out != nil && l.out.unit.worker.Load() == w
	if local == l.local {
		return
	}
	l.local = local
	for _, h := range l.heads {
		h.SetLocal(local)
	}
}

// notify sees to it that the receiver looks at the link.
func (l *Link) notify(w *Worker) {
	home := l.to.worker.Load()
	if home == w && w != nil {
		w.makeReady(l)
		return
	}
	if bug.On(bug.LostWakeup) && home != nil && !home.parked.Load() {
		return
	}
	if !l.posted.Load() && l.posted.CompareAndSwap(false, true) && home != nil {
		if home.post(&l.readyNote) && w != nil {
			w.wokeAnother = true
		}
	}
}

// empty reports whether nothing is visible in any queue.
func (l *Link) empty() bool {
	for _, h := range l.heads {
		if !h.Empty() {
			return false
		}
	}
	return true
}

// rest reports whether there is more to take, and whether the sender waits for
// room; only the receiver calls it.
func (l *Link) rest() (more, waited bool) {
	for _, h := range l.heads {
		more = more || h.HasMore()
		waited = waited || h.IsAwaited()
	}
	return more, waited
}

// reportRoom tells a sender that waits for room where there is some.
func (l *Link) reportRoom(w *Worker) {
	for _, h := range l.heads {
		if h.HasRoomForWaiter() {
			l.room(w)
		}
	}
}

// room tells the sender that one of its full queues has room.
func (l *Link) room(w *Worker) {
	if l.gate != nil {
		l.gate.signal()
	} else if home := l.out.unit.worker.Load(); home == w {
		w.roomIn(l)
	} else if l.wantRoom.CompareAndSwap(false, true) {
		if home.post(&l.roomNote) {
			w.wokeAnother = true
		}
	}
}
