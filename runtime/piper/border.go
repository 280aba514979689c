package piper

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/topogen/topogen/runtime/queue"
)

// Border connects a pool with the same topology on other nodes. Package border implements
// it. A pool without a Border runs the whole topology. The methods must not wait, with the
// exception of Begin and End.
type Border interface {
	// Attach is called by New, before the instances are adopted.
	Attach(in Interior)
	// Wrap is called for each new link. The link passes its messages to the result, which
	// wraps inlet.
	Wrap(l *Link, inlet Inlet) Crossing
	// Begin is called by Run, before anything else. It calls Interior.Place.
	Begin(ctx context.Context) error
	// Settle is called after Unit.SignalSettle, on the goroutine of the unit's worker.
	Settle(u *Unit)
	// Quiet reports that a group has nothing to do on this node. It waits for
	// Interior.Agree.
	Quiet(group int)
	// Full reports that a queue within a group is full. It is not called again until Interior.IsFull has
	// returned false.
	Full(group int)
	// Stopping reports that the context of Run has ended.
	Stopping()
	// FencingToken is that of an instance which this process runs.
	FencingToken(u *Unit) uint64
	// End is called before Run returns, with its error.
	End(err error)
}

// Crossing is the Inlet of a link in a pool with a Border.
type Crossing interface {
	Inlet
	// Arrives reports whether the sending instance runs on another node.
	Arrives() bool
	// Took counts a message that a Delivery has taken. Resolved counts a message that the
	// Delivery has cleared.
	Took()
	Resolved()
	// EndDrain is called if a handler has panicked or does not return, because Drain does not
	// return then.
	EndDrain()
}

// crossingOf returns the Crossing of a link, or nil if the topology runs on one node.
func crossingOf(l *Link) Crossing {
	if l.to.proc.pool.border == nil { // costs less than the assertion, for each message of a processor with a Watch
		return nil
	}
	c, _ := l.inlet.(Crossing)
	return c
}

// arrives reports whether the sending instance of l runs on another node.
func (l *Link) arrives() bool {
	c := crossingOf(l)
	return c != nil && c.Arrives()
}

// endDrain ends the Drain of a link whose handler has panicked or does not return.
func (l *Link) endDrain() {
	if c := crossingOf(l); c != nil {
		c.EndDrain()
	}
}

// Heads are the heads of the queues of the link.
func (l *Link) Heads() []*queue.Head { return l.heads }

// Receiver is the unit of the receiving instance.
func (l *Link) Receiver() *Unit { return l.to }

// SendingUnit is the unit of the sending instance. It is nil for timers and external senders.
func (l *Link) SendingUnit() *Unit {
	if l.out == nil {
		return nil
	}
	return l.out.unit
}

// Sender returns the index of the sending processor, and of its instance: 0 if the processor
// is external. The link must not be that of a timer.
func (l *Link) Sender() (processor, instance int) {
	if l.out == nil {
		return l.gate.external.proc.index, 0
	}
	return l.out.unit.proc.index, l.out.unit.Index()
}

// NextOf returns the edge of the next message that inlet, which is wrapped, passes on.
func (l *Link) NextOf(inlet Inlet) (edge int, ok bool) {
	if o, ok := inlet.(interface{ Next() (int, bool) }); ok {
		return o.Next()
	}
	if l.empty() {
		return 0, false
	}
	return l.heads[0].Index(), true
}

// Settle calls settle, which settles messages of the queues, and reports to the sender that
// there is room. It must be called on the goroutine of the receiver's worker.
func (l *Link) Settle(settle func()) {
	w := l.to.worker.Load()
	l.setLocal(w) // the sender may have moved since the last turn of the link
	settle()
	l.reportRoom(w)
	if !l.empty() {
		w.makeReady(l)
	}
}

// IsRemote reports whether another node runs the instance.
func (u *Unit) IsRemote() bool { return u.remote }

// SignalSettle makes the pool call Border.Settle. Any goroutine may call it.
func (u *Unit) SignalSettle() { u.signal(controlSettle) }

// MaySend reports whether the turn of the unit may go on to send.
func (u *Unit) MaySend() bool { return !u.MustYield() && !u.paused() }

// HasUnpublished reports whether the instance has sent messages that are not visible yet. Any
// goroutine may call it.
func (u *Unit) HasUnpublished() bool { return u.out.dirty.Load() != nil }

// Processor is the index of the unit's processor.
func (u *Unit) Processor() int { return u.proc.index }

// Cell is the instance of the unit.
func (u *Unit) Cell() Cell { return u.cell.of }

// Border is the Border of the sender's pool, or nil.
func (o *Out) Border() Border {
	if o.unit == nil {
		return nil
	}
	return o.unit.Border()
}

// Border is the Border of the pool, or nil.
func (u *Unit) Border() Border { return u.proc.pool.border }

// Border is the Border of the pool, or nil.
func (x *External) Border() Border { return x.pool.border }

// Interior is what a Border may use of its pool.
type Interior struct{ pool *Pool }

// Place constructs the instances that this node runs. All others run on other nodes.
// Border.Begin calls it once.
func (in Interior) Place(isHere func(processor, instance int) bool) error {
	for i, proc := range in.pool.processors {
		for j, u := range proc.units {
			if j == proc.instances() || !isHere(i, j) {
				continue
			}
			if err := proc.construct(u); err != nil {
				return err
			}
			u.remote = false
			in.pool.activate(u)
		}
	}
	return nil
}

// construct makes the value of an instance that was adopted without one.
func (p *processor) construct(u *Unit) error {
	parts, err := p.Processor.make(u.Instance(), true)
	if err == nil {
		cell{parts.Cell}.Adopted()
	}
	return err
}

// instances is the number of instances of a processor, on each node if it has Others.
func (p *processor) instances() int {
	if p.Others && p.pool.border != nil {
		return len(p.units) - 1
	}
	return len(p.units)
}

// AddGuest adds the unit of parts, which sends in place of an instance of another node.
func (in Interior) AddGuest(index, instance int, parts Parts) {
	p, proc, u := in.pool, in.pool.processors[index], parts.Unit
	// A processor of its own, because the guest has neither a Watch nor events.
	u.proc = &processor{Processor: Processor{Name: proc.Name, Group: proc.Group}, pool: p, index: proc.index, group: proc.group, guest: true}
	u.cell, u.out, u.index = cell{parts.Cell}, parts.Out, int32(instance)
	u.controlNote.kind = noteControl
	u.longTurn = true
	u.out.unit = u
	u.targetWorker.Store(int32((index + instance) % len(p.workers)))
	u.worker.Store(p.workers[u.targetWorker.Load()])
}

// Accepts reports whether messages that from, a guest, sends may still enter the group of a
// processor: Finish of its instances was not called. The messages of the group itself enter
// until the group has finished.
func (in Interior) Accepts(from *Unit, processor int) bool {
	to := in.pool.processors[processor].group
	switch to.accepts.Load() {
	case acceptsAll:
		return true
	case acceptsWithin:
		return from.proc.group == to
	}
	return false
}

// Processors is the number of processors.
func (in Interior) Processors() int { return len(in.pool.processors) }

// Processor describes a processor. The caller must not change it.
func (in Interior) Processor(i int) *Processor { return &in.pool.processors[i].Processor }

// Instances is the number of instances of a processor, on each node if it has Others.
func (in Interior) Instances(processor int) int { return in.pool.processors[processor].instances() }

// Units are the units of a processor. If it has Others, the last one stands for those of all
// other nodes.
func (in Interior) Units(processor int) []*Unit { return in.pool.processors[processor].units }

// Edges is the number of edges.
func (in Interior) Edges() int { return len(in.pool.edges) }

// Edge describes an edge. The caller must not change it.
func (in Interior) Edge(i int) *Edge { return &in.pool.edges[i].Edge }

// EdgeName is the name of an edge in errors and lines of the log.
func (in Interior) EdgeName(i int) string { return in.pool.edgeName(i) }

// QueueLimit is how many messages a queue of an edge holds at most, within a cycle too.
func (in Interior) QueueLimit(edge int) uint64 {
	return max(cycleLimitMin, uint64(in.pool.options.cycleLimit), cycleFactor*uint64(in.pool.edges[edge].Capacity))
}

// Batch is the number of messages that an instance handles in a turn.
func (in Interior) Batch() int { return in.pool.batch }

// MessageLimit is the largest size of an encoded message in bytes.
func (in Interior) MessageLimit() int { return in.pool.options.messageLimit }

// CountDiscarded counts messages of an edge that were taken from their queues and dropped.
func (in Interior) CountDiscarded(edge, n int) { in.pool.edges[edge].discarded.Add(uint64(n)) }

// CountRefused counts a message of an edge that enters no queue.
func (in Interior) CountRefused(edge int) { in.pool.edges[edge].refused.Add(1) }

// Log logs a line about messages between nodes, at most once a second for each processor.
func (in Interior) Log(processor int, level slog.Level, text string, attrs ...slog.Attr) {
	in.pool.logbook.repeatedLine(&in.pool.processors[processor].crossLog, level, text, attrs...)
}

// Snapshot is that of the pool.
func (in Interior) Snapshot() Snapshot { return in.pool.Snapshot() }

// Fail ends Run with an error.
func (in Interior) Fail(err error) { in.pool.Fail(err) }

// Leave ends Run without an error although its groups have not finished: the node leaves
// the cluster after it has handled what was queued on it.
func (in Interior) Leave() { in.pool.lifecycle.end(nil) }

// StopTimers ends the ticks of groups that hold no work. It is called before a node leaves:
// inputs that are open on other nodes keep timers open, and their messages keep the node
// busy.
func (in Interior) StopTimers() { in.pool.timersStopped.Store(true) }

// IsFull reports whether a queue within a group is full on this node, and whether there was a moment without a full
// queue since the last call, or since Border.Full was called.
func (in Interior) IsFull(group int) (full, hadRoom bool) {
	g := in.pool.groups[group]
	hadRoom = g.hadRoom.Swap(false)
	if g.full.Load() > 0 {
		return true, hadRoom
	}
	g.reported.Store(false)
	if g.full.Load() == 0 || !g.reported.CompareAndSwap(false, true) {
		return false, true // a queue that is full now is reported
	}
	return true, true
}

// HoldBack holds back the messages that enter a cycle, as if one of its queues were full, because a queue is full on
// another node. Any goroutine may call it.
func (in Interior) HoldBack(group int, hold bool) {
	g := in.pool.groups[group]
	if g.fullElsewhere.Store(hold); !hold && g.full.Load() == 0 {
		g.signalRoom()
	}
}

// Groups is the number of groups of processors that finish together.
func (in Interior) Groups() int { return len(in.pool.groups) }

// GroupOf is the group of a processor.
func (in Interior) GroupOf(processor int) int { return in.pool.GroupOf(processor) }

// ErrFinished is returned by Begin of a Border if the topology has finished in the run of the process
// before this one. Run then returns nil at once.
var ErrFinished = errors.New("piper: the topology has finished")

// GroupState describes how far a group is on this node.
type GroupState struct {
	Phase uint8  // 0 open, 1 closing, 2 finishing, 3 flushing, 4 finished
	Quiet bool   // it has nothing to do here until a message comes from another node
	Turns uint32 // changes whenever it had something to do
	Empty bool   // it has no instances, as an external processor, so it never finishes
}

// Phases of a GroupState. In GroupClosing and GroupFlushing, a quiet group waits for Agree.
const (
	GroupOpen     = uint8(phaseOpen)
	GroupClosing  = uint8(phaseClosing)
	GroupFlushing = uint8(phaseFlushing)
	GroupFinished = uint8(phaseFinished)
)

// Group returns the state of a group. Any goroutine may call it.
//
// A group of a topology that has failed is not quiet. Otherwise the other nodes could
// finish it without an error before they learn of the failure.
func (in Interior) Group(i int) GroupState {
	p, g := in.pool, in.pool.groups[i]
	g.mu.Lock()
	turns := g.activity.Load()
	s := GroupState{Phase: uint8(g.phase), Turns: uint32(turns >> 32), Empty: len(g.units) == 0}
	waits := g.phase == phaseClosing || g.phase == phaseFlushing
	s.Quiet = waits && uint32(turns) == 0 && g.allEmpty() && g.activity.Load() == turns
	g.mu.Unlock()
	// Only now, because a call fails before the group goes on after it. And finish takes
	// the locks in the other order.
	if s.Quiet && p.ended.Load() {
		p.mu.Lock()
		s.Quiet = p.lifecycle.err == nil
		p.mu.Unlock()
	}
	return s
}

// Agree lets a group go on from a phase in which it is quiet on all nodes. It is called once
// for each phase and group. Any goroutine may call it.
func (in Interior) Agree(i int, phase uint8) {
	g := in.pool.groups[i]
	g.mu.Lock()
	if uint8(g.phase) != phase {
		g.mu.Unlock()
		return
	}
	g.agreed = true
	g.mu.Unlock()
	g.beginActivity()
	g.endActivity(nil)
}

// IsIdle reports whether no message is queued, no call runs and no guest is busy. It calls
// guestsBusy before it looks at the queues.
func (in Interior) IsIdle(guestsBusy func() bool) bool {
	p := in.pool
	if s := p.stepper; s != nil && s.inStep.Load() {
		return false // a Stepper does not count calls
	}
	before, idle := in.callCount()
	if !idle || guestsBusy() || in.unpublished() { // before the queues: a message is published first and leaves the list then
		return false
	}
	for _, g := range p.groups {
		if !g.isIdle() {
			return false
		}
	}
	after, idle := in.callCount()
	return idle && before == after
}

// unpublished reports whether an instance has sent messages that are not visible yet.
func (in Interior) unpublished() bool {
	for _, proc := range in.pool.processors {
		if slices.ContainsFunc(proc.units, (*Unit).HasUnpublished) {
			return true
		}
	}
	return false
}

// callCount is a number that changes with each call of a handler. It returns false if a
// call runs.
func (in Interior) callCount() (n uint64, idle bool) {
	p := in.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range slices.Concat(p.workers, p.solos) {
		state := w.state.Load()
		if state&1 != 0 {
			return 0, false
		}
		n += state
	}
	return n, true
}

// isIdle reports whether no instance of the group holds a message or work, or waits for a
// reply.
func (g *group) isIdle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.phase == phaseFinished || g.sources == 0 && g.holds == 0 && uint32(g.activity.Load()) == 0 && g.allEmpty()
}

// IsClosed reports whether no external sender accepts messages any more, and all accepted
// messages are in their queues. It is called before IsIdle, when a client ends.
func (in Interior) IsClosed() bool {
	for _, x := range in.pool.externals {
		if !x.isClosed() {
			return false
		}
	}
	return true
}
