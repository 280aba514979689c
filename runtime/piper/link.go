package piper

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/internal/count"
	"github.com/topogen/topogen/runtime/internal/race"
	"github.com/topogen/topogen/runtime/queue"
)

// Link connects a sending instance, an external sender or a timer with a receiving
// instance. Generated code embeds it next to the queues of the pair's edges.
type Link struct {
	inlet Inlet
	out   *Out // of the sending instance; nil for timers and external senders
	to    *Unit
	gate  *Gate // for an external sender
	heads []*queue.Head

	// Owned by the receiver, in a separate cache line.
	nextIn    count.Pointer[Link] // next in the receiver's list of all links; other goroutines read it
	nextReady *Link               // next in the receiver's list of ready or gated links
	listed    bool                // in the ready or gated list
	local     bool                // sender and receiver are on the same worker
	idleIn    uint16              // in which stay of the receiver its worker has listed the link, to release it; 0: none
	wantRoom  atomic.Bool
	edge      int32       // the edge of the message that is being handled; invalid between two messages
	hops      int32       // estimated turns for the rebalancer, halved at each of its decisions
	roomNote  note        // in an inbox while wantRoom is set
	asked     atomic.Bool // the receiver has left the queues, and asks the sender to release the link
	gone      atomic.Bool // the sender has removed the link from its table
	_         [8]byte

	// Owned by the sender, in a separate cache line.
	nextDirty count.Pointer[Link] // next in the sender's list of unpublished links; expose reads it
	number    count.Count         // number of the next message; expose reads it
	bound     count.Count         // messages with lower numbers are visible
	dirty     bool                // in the list of unpublished links
	inCycle   bool                // sender and receiver are in the same group
	entering  bool                // leads from outside into a cyclic group
	ordered   bool                // has several edges, so messages are numbered
	posted    atomic.Bool
	readyNote note              // in an inbox while posted is set
	table     *linkTable[*Link] // has the link, under the index of the receiver; nil if the sender has no table
	_         [8]byte
}

// LinkOf is a link with one queue, of type Q.
type LinkOf[Q any] struct {
	Link  Link
	Queue Q
}

// Join makes l lead from the sender out to the unit to. first and more are the heads of
// its queues. Most links have one queue, for which the caller need not allocate a
// slice.
func (l *Link) Join(in Inlet, out *Out, to *Unit, first *queue.Head, more ...*queue.Head) {
	l.inlet, l.to = in, to
	l.heads = append(append(make([]*queue.Head, 0, 1+len(more)), first), more...)
	l.out = out
	if out != nil {
		out.made = l
	}
	if b := to.proc.pool.border; b != nil {
		l.inlet = b.Wrap(l, in)
	}
	l.edge = int32(first.Index())
	l.ordered = len(more) > 0
	group := to.proc.group
	l.inCycle = out != nil && out.unit.proc.group == group
	l.entering = !l.inCycle && group.cyclic
	l.readyNote.kind, l.roomNote.kind = noteReady, noteRoom
	for {
		first := to.inlinks.Load()
		l.nextIn.StoreRelease(first)
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

// Bound is the number below which all messages are visible. The receiver handles only
// messages below Bound, lowest number first. So it handles the messages of all edges in
// the order in which they were sent.
func (l *Link) Bound() uint64 { return l.bound.Load() }

// Handling records the edge of the message that is handled next, for the error of the
// handler.
func (l *Link) Handling(edge int) { l.edge = int32(edge) }

// Touched, Filled and Overfull make a Link the queue.Listener of its queues.
func (l *Link) Touched(h *queue.Head) (inTurn bool) {
	switch {
	case l.out == nil:
	case !l.out.calling:
		l.sentLate(h)
		return false
	case !l.dirty:
		l.dirty = true
		l.nextDirty.StoreRelease(l.out.dirty.Own())
		l.out.dirty.StoreRelease(l)
	}
	return true
}

func (l *Link) Filled(h *queue.Head) {
	if l.out == nil {
		return // an external sender checks for room before each message
	}
	o := l.out
	if o.unit.proc.pool.edges[h.Index()].Full != Wait {
		return // the send itself drops the message or fails
	}
	o.filled.Push(h)
	if l.inCycle {
		l.to.proc.group.full.Add(1)
	} else {
		o.full++
	}
	if w := o.unit.worker.Load(); w != nil {
		w.yield.Or(yieldFull)
	}
}

func (l *Link) Overfull(h *queue.Head) {
	if l.inCycle {
		if depth := h.Depth(); depth >= l.to.proc.pool.cycleLimit(h) {
			l.to.proc.group.failGrowing(l, h, depth)
		}
	}
}

// publish makes the messages visible to the receiver. w is the worker of the caller, or
// nil.
func (l *Link) publish(w *Worker) {
	local := w != nil && l.to.worker.Load() == w // cannot change now, because only this goroutine could move the receiver
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

// publishShared makes a message visible that an external sender may have put into the queue of h. It
// reports whether there is one. The caller has a full barrier between publishShared and notify.
func (l *Link) publishShared(h *queue.Head) (put bool) {
	put = h.PublishShared()
	if put && l.ordered {
		l.bound.StoreRelease(l.number.Own())
	}
	return put
}

// expose makes the messages visible. It is called on a goroutine that is not the
// sender's. If messages are numbered, it exposes all of them or none, because the last
// number may belong to a message that is not yet in its queue.
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
		l.raiseBound(number)
	}
	if exposed {
		l.notify(nil)
	}
}

// raiseBound sets bound to number, unless the sender has published more messages in the meantime.
func (l *Link) raiseBound(number uint64) {
	for bound := l.bound.Load(); bound < number; bound = l.bound.Load() {
		if l.bound.CompareAndSwap(bound, number) {
			return
		}
	}
}

// setLocal records in the queues whether sender and receiver both run on w.
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

// notify makes the receiver look at the link.
func (l *Link) notify(w *Worker) {
	home := l.to.worker.Load()
	if home == w && w != nil {
		w.makeReady(l)
		return
	}
	if !l.posted.Load() && l.posted.CompareAndSwap(false, true) && home != nil {
		if home.post(&l.readyNote) && w != nil {
			w.wokeAnother = true
		}
	}
}

// empty reports whether no queue has a visible message.
func (l *Link) empty() bool {
	for _, h := range l.heads {
		if !h.Empty() {
			return false
		}
	}
	return true
}

// rest reports whether there are more visible messages, and whether the sender waits for room.
// Only the receiver calls it.
func (l *Link) rest() (more, waited bool) {
	for _, h := range l.heads {
		more = more || h.HasMore()
		waited = waited || h.IsAwaited()
	}
	return more, waited
}

// reportRoom reports room to a sender that waits for it.
func (l *Link) reportRoom(w *Worker) {
	for _, h := range l.heads {
		if h.HasRoomForWaiter() {
			l.signalRoom(w)
		}
	}
}

// signalRoom reports to the sender that one of its full queues has room.
func (l *Link) signalRoom(w *Worker) {
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

// relist makes a link ready again whose messages were being handled.
func (l *Link) relist() {
	if !l.listed {
		l.listed = true
		l.to.ready.push(l)
	}
}

// handleInline handles messages of l on the caller's goroutine, until c has its reply, if the
// receiver and its worker are idle. It reports whether the receiver knows of the messages.
func (l *Link) handleInline(c asking) bool {
	u := l.to
	w := u.worker.Load()
	if w == nil || w.index < 0 || u.proc.watches != nil || u.proc.pool.border != nil || !w.borrow() {
		return false
	}
	if u.worker.Load() != w || !u.idle() {
		w.giveBack()
		return false
	}
	w.pool.monitor.wakeUp()
	r := w.spareRunner
	if r == nil {
		r = &runner{w: w}
	}
	w.spareRunner = nil
	w.runner, w.lender = r, w.runner
	w.makeReady(l)
	r.turnsInline(u, c)
	return true
}

// Order begins the search. Only messages that are visible on every edge count.
func (l *Link) Order() Order {
	bound := l.Bound()
	return Order{Edge: -1, N: bound, Until: bound}
}

// JoinIsolated prepares a link that leads out of the process. Its queues are already
// initialized.
func (l *Link) JoinIsolated(out *Out, heads ...*queue.Head) {
	l.out, l.heads = out, heads
	l.ordered = len(heads) > 1
}

// Flush publishes the messages of a link that leads out of the process.
func (l *Link) Flush() {
	for _, h := range l.heads {
		h.Publish(true)
	}
	if l.ordered {
		l.bound.Store(l.number.Own())
	}
}

// sentLate handles a message of the link that is sent after the handler call of its sender had
// ended, by a goroutine that a handler started or by another instance that got the
// sender. The next call that sends along the same link publishes the message. If there
// is none, it counts as queued when Run has ended.
func (l *Link) sentLate(h *queue.Head) {
	p := l.out.unit.proc.pool
	if p.lateSends != nil {
		l.sentLateOutside()
		return
	}
	p.edges[h.Index()].late.Add(1)
	p.lateOnce.Do(func() {
		u, stack := l.out.unit, debug.Stack()
		p.logbook.line(slog.LevelError, lateText,
			slog.String("processor", u.proc.Name), slog.Int("instance", u.Index()), slog.String("edge", p.edgeName(h.Index())), slog.String("stack", string(stack)))
		if p.stepper != nil || isStrict() {
			p.lifecycle.end(fmt.Errorf("%w: processor %q, instance %d, edge %s\n%s", ErrLateSend, u.proc.Name, u.Index(), p.edgeName(h.Index()), stack))
		}
	})
}

// sentLateOutside is sentLate in the process of an isolated instance. If a late send
// must fail Run, the process panics, and its parent gets the text. Otherwise the
// message is dropped.
func (l *Link) sentLateOutside() {
	p := l.out.unit.proc.pool
	p.lateSends.Add(1)
	if isStrict() {
		panic(ErrLateSend)
	}
	p.lateOnce.Do(func() {
		slog.Error(lateText+"; a message from an isolated instance is dropped", slog.String("stack", string(debug.Stack())))
	})
}

const lateText = "topogen: a message was sent after the handler call of its sender had ended; use a sender only within its call and on the goroutine of the call"

func isStrict() bool { return race.Enabled || isTest() }

// isTest reports whether the program was built by go test.
var isTest = sync.OnceValue(func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && strings.HasSuffix(info.Path, ".test")
})
