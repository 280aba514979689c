package piper

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/queue"
)

const (
	// cycleLimitMin is the default limit of a queue within a cycle. Queues within a
	// cycle never pause its members, so a cycle that sends more messages than it
	// handles would fill the memory. A large finite burst, such as all links of one
	// page, must pass.
	cycleLimitMin = 1 << 18
	// cycleFactor times the capacity is the default limit of a queue with a large
	// capacity.
	cycleFactor = 16
)

// values of group.accepts
const (
	acceptsAll    = iota
	acceptsWithin // messages of the group itself: Finish may send some
	acceptsNone
)

type phase uint8

const (
	phaseOpen      phase = iota // messages may still come from outside or from sources
	phaseClosing                // the remaining messages are being handled
	phaseFinishing              // Finish is being called, unit by unit
	phaseFlushing               // messages that Finish sent within the group are being handled
	phaseFinished
)

// group is a strongly connected component of the topology. Its members finish together.
type group struct {
	pool            *Pool
	index           int
	cyclic          bool
	finishes        bool         // some member has Finish, so an instance that is down must be restarted even if its inputs are done
	units           []*Unit      // in the order of the topology file
	down            []*group     // the groups that its edges lead to
	full            atomic.Int32 // number of full queues within it
	fullElsewhere   atomic.Bool  // such a queue is on another node
	reported        atomic.Bool  // the border knows that a queue is full
	hadRoom         atomic.Bool  // no queue was full for a moment since the border has looked
	failedInstances atomic.Int32 // number of instances that failed and are not restarted
	onTimer         bool         // has only timers as inputs, or is used from outside: open until the context of Run ends

	// activity has two counters, used while the group closes. The lower half counts the
	// activities that may still change the group's queues: units in a turn, units that
	// have not yet seen controlClosing, and the caller of Finish. The upper half counts
	// how often an activity began.
	activity atomic.Uint64

	// accepts says which messages of other nodes still enter the group, see Interior.Accepts.
	accepts atomic.Uint32

	mu            sync.Mutex
	phase         phase
	openInputs    int     // number of groups and external senders that may still send into it
	sources       int     // number of units whose Ping or Serve is not done
	holds         int     // number of unreleased holds (topo.Hold)
	next          int     // index of the unit whose Finish is called next
	outputsClosed bool    // closeOutputs was called: the receivers were informed
	awaitingRoom  []*Unit // units that wait for room within the group
	lastBusy      *Link   // a link that had messages at the last check
	busyUnit      int     // index of the unit that lastBusy leads to
	durable       bool    // durable edges lead into it, and are open
	agreed        bool    // in a cluster: the group is quiet on all nodes, so it may go on to its next phase
}

// isFull reports whether a queue within a cycle is full, on any node. Then no message may enter the
// cycle.
func (g *group) isFull() bool { return g.cyclic && (g.full.Load() > 0 || g.fullElsewhere.Load()) }

// hasRoomAgain counts a full queue within the group that has room again. If it was the last
// one on all nodes, the waiting units are signaled.
func (g *group) hasRoomAgain() {
	if g.full.Add(-1) != 0 {
		return
	}
	if g.hadRoom.Store(true); !g.fullElsewhere.Load() {
		g.signalRoom()
	}
}

// signalRoom signals the units that wait for room.
func (g *group) signalRoom() {
	g.mu.Lock()
	waiting := g.awaitingRoom
	g.awaitingRoom = nil
	g.mu.Unlock()
	for _, u := range waiting {
		u.signal(controlResume)
	}
}

// reportFull tells the border that a queue within the group is full, unless it knows.
func (g *group) reportFull() {
	if !g.reported.Load() && g.reported.CompareAndSwap(false, true) {
		g.hadRoom.Store(false)
		g.pool.border.Full(g.index)
	}
}

// await adds u to the units that are signaled when there is room. It returns false if
// there is room now.
func (g *group) await(u *Unit) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isFull() {
		return false
	}
	g.awaitingRoom = append(g.awaitingRoom, u)
	return true
}

// awaitRoom holds back the messages that enter u's group until the group has room.
func awaitRoom(u *Unit) {
	if u.awaitsRoom {
		return
	}
	u.awaitsRoom = true
	if !u.proc.group.await(u) {
		releaseGated(u)
	}
}

// releaseGated makes the links ready again that were held back because the group was
// full, in the order in which they were held back: the first one may fill the group again.
func releaseGated(u *Unit) {
	u.awaitsRoom = false
	if u.wokenPending {
		u.wokenPending = false
		u.pendingCalls |= callWoken
	}
	var first *Link
	for l := u.gated; l != nil; l = u.gated { // the last one is the first in the list
		u.gated, l.nextReady, first = l.nextReady, first, l
	}
	for l := first; l != nil; l = first {
		first = l.nextReady
		u.ready.push(l)
	}
}

// inputClosed counts a group or an external sender that will send no more messages.
func (g *group) inputClosed() {
	g.mu.Lock()
	g.openInputs--
	g.beginClosing()
}

// sourceDone counts a unit whose Ping or Serve is done.
func (g *group) sourceDone() {
	g.mu.Lock()
	g.sources--
	g.beginClosing()
}

// sourceBegins counts a restarted unit with Ping or Serve. It reports whether the unit
// may send.
func (g *group) sourceBegins() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase != phaseOpen {
		return false
	}
	g.sources++
	return true
}

// beginClosing closes the group if it has no open inputs, sources or holds. The caller
// holds the lock; beginClosing unlocks it.
func (g *group) beginClosing() {
	if g.phase != phaseOpen || g.openInputs > 0 || g.sources > 0 || g.holds > 0 {
		awaits := g.awaitsDurable()
		g.mu.Unlock()
		if awaits {
			g.pool.durable.InputsClosed(g.index)
		}
		return
	}
	g.phase = phaseClosing
	g.activity.Add(uint64(len(g.units)) + 1)
	g.mu.Unlock()
	for _, u := range g.units {
		u.signal(controlClosing)
	}
	g.endActivity(nil)
}

// hold keeps the group from finishing until release is called, once for each hold. The
// handler of a queued message may also hold while the group is closing.
func (g *group) hold() {
	g.beginActivity() // first, so that the group does not begin to finish in between
	g.mu.Lock()
	g.holds++
	g.mu.Unlock()
}

func (g *group) release() {
	g.mu.Lock()
	g.holds--
	g.beginClosing()
	g.endActivity(nil)
}

// isFinished reports whether the group has finished.
func (g *group) isFinished() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.phase == phaseFinished
}

// isHeld reports whether an instance of the group holds work.
func (g *group) isHeld() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.holds > 0
}

// ticks reports whether a tick is due in the group, and whether there may be another
// one later. Timers close together with the last other input, and when the node leaves
// its cluster, unless an instance of the group holds work.
func (g *group) ticks() (due, goOn bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	open := g.phase == phaseOpen && !g.pool.timersStopped.Load()
	return open || g.phase <= phaseClosing && g.holds > 0, g.phase <= phaseClosing
}

// beginActivity begins an activity that may change the group's queues: a turn of a unit of a
// closing group, or a tick.
func (g *group) beginActivity() { g.activity.Add(1<<32 + 1) }

// endActivity ends an activity. If no activity is left and all queues are empty, the queues
// remain empty, because the inputs from outside are closed. sent is a link within the
// group that the activity sent along, or nil. If it is not empty, the other links need
// no check: its receiver will endActivity later.
func (g *group) endActivity(sent *Link) {
	if turns := g.activity.Add(^uint64(0)); uint32(turns) != 0 || sent != nil && !sent.empty() {
		return
	}
	g.mu.Lock()
	turns := g.activity.Load()
	if uint32(turns) != 0 || g.phase == phaseOpen || g.phase == phaseFinished || !g.allEmpty() || g.activity.Load() != turns {
		g.mu.Unlock()
		return // a newer activity checks again when it leaves
	}
	if g.pool.border != nil && !g.agreed {
		g.mu.Unlock()
		g.pool.border.Quiet(g.index)
		return
	}
	g.agreed = false
	if g.phase == phaseClosing {
		g.phase = phaseFinishing
		g.accepts.Store(acceptsWithin)
		g.activity.Add(1) // counted until the last Finish has returned
		g.mu.Unlock()
		g.pool.events.closeTimers(g) // no further tick can come
		if g.pool.faulty {
			g.inputsDone()
		}
		g.finishNext()
		return
	}
	g.phase = phaseFinished
	g.accepts.Store(acceptsNone)
	g.mu.Unlock()
	if g.pool.faulty {
		// Edges within the group close with it, when there is no receiver left.
		g.pool.events.closeOutputs(func(e *edge) bool { return g.pool.processors[e.From].group == g && !e.inCycle })
	}
	g.closeOutputs()
	g.pool.logbook.finished(g)
	g.pool.lifecycle.groupFinished()
}

// closeOutputs reports to the receiving groups, once, that the group sends no more.
func (g *group) closeOutputs() {
	g.mu.Lock()
	closed := g.outputsClosed
	g.outputsClosed = true
	g.mu.Unlock()
	if closed {
		return
	}
	for _, d := range g.down {
		d.inputClosed()
	}
}

// allEmpty reports whether all queues into the group's units are empty. It continues at the
// link where it found messages the last time, because most links before that one stay empty.
// Otherwise a group with many units would look at all of them after each turn.
func (g *group) allEmpty() bool {
	if len(g.units) == 0 {
		return true // the group of an external sender
	}
	first, from := g.lastBusy, g.busyUnit
	for i := range len(g.units) + 1 { // the links of the first unit are looked at in two parts
		at := (from + i) % len(g.units)
		l := g.units[at].inlinks.Load()
		if i == 0 && first != nil {
			l = first
		}
		for ; l != nil && (i == 0 || l != first); l = l.nextIn.Load() {
			if !l.empty() {
				g.lastBusy, g.busyUnit = l, at
				return false
			}
		}
	}
	return true
}

// finishNext calls the next Finish, one after the other in the order of the topology
// file, each on the worker of its unit. After the last one, the messages that they sent
// within the group are handled.
func (g *group) finishNext() {
	g.mu.Lock()
	for g.next < len(g.units) && (!g.units[g.next].proc.Finish || g.units[g.next].remote) {
		g.next++
	}
	if g.next < len(g.units) {
		u := g.units[g.next]
		g.next++
		g.mu.Unlock()
		u.signal(controlFinish)
		return
	}
	g.phase = phaseFlushing
	g.mu.Unlock()
	g.endActivity(nil)
}

// failGrowing ends Run with ErrCycleGrows, because a queue of a link within the group
// has reached its limit.
func (g *group) failGrowing(l *Link, h *queue.Head, depth uint64) {
	p := g.pool
	lengths := make([]int, len(p.edges))
	for _, u := range g.units {
		for in := u.inlinks.Load(); in != nil; in = in.nextIn.Load() {
			for _, h := range in.heads {
				lengths[h.Index()] += int(h.Written() - min(h.Taken(), h.Written())) // includes messages that are not published yet
			}
		}
	}
	var b strings.Builder
	for i := range p.edges {
		if e := &p.edges[i]; e.inCycle && p.processors[e.From].group == g {
			fmt.Fprintf(&b, "\n\t%s: %d messages in all its queues", p.edgeName(i), lengths[i])
		}
	}
	p.lifecycle.fail(fmt.Errorf("%w: the queue of %s (instance %d to %d) holds %d messages, the limit is %d. "+
		"If the cycle ends by design, raise the limit: cycle_limit in the section pool of the topology file, TOPOGEN_CYCLE_LIMIT, or pool.CycleLimit. The cycle:%s",
		ErrCycleGrows, p.edgeName(h.Index()), l.From(), l.to.index, depth, p.cycleLimit(h), b.String()))
}

// awaitsDurable reports whether only durable edges keep an open group open. The caller holds
// the lock of the group.
func (g *group) awaitsDurable() bool {
	return g.durable && g.phase == phaseOpen && g.openInputs == 1 && g.sources == 0 && g.holds == 0
}
