package piper

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/queue"
)

const (
	// cycleLimitMin is the default limit of a queue within a cycle. The members of a
	// cycle are never paused by its queues, so a cycle that sends more messages than it
	// handles would fill the memory. A large finite burst, such as all links of one
	// page, must pass.
	cycleLimitMin = 1 << 18
	// cycleFactor times its capacity is the limit of a queue with a large capacity.
	cycleFactor = 16
)

// cycleLimit is how many messages a queue within a cycle may hold.
func (p *Pool) cycleLimit(h *queue.Head) uint64 {
	capacity := uint64(h.Capacity())
	if limit := uint64(p.options.cycleLimit); limit > 0 {
		return max(limit, capacity)
	}
	return max(cycleLimitMin, cycleFactor*capacity)
}

type phase uint8

const (
	phaseOpen      phase = iota // something may still come from outside, or of itself
	phaseClosing                // what is left within is being handled
	phaseFinishing              // Finish is being called, unit by unit
	phaseFlushing               // what Finish sent within is being handled
	phaseFinished
)

// group is a strongly connected component: its members finish together.
type group struct {
	pool            *Pool
	index           int
	cyclic          bool
	units           []*Unit  // in file order
	down            []*group // that its edges lead to
	full            atomic.Int32
	failedInstances atomic.Int32 // instances that have failed for good, and send no more
	onTimer         bool         // nothing but timers comes in, or it is used from outside: open until Run's context ends

	// turns holds, while closing, who may still change the group's queues in its
	// lower half (units in a turn or not yet told, and the finisher), and counts
	// who began to in its upper half.
	activity atomic.Uint64

	mu            sync.Mutex
	phase         phase
	openInputs    int     // groups and external senders that may still send into it
	sources       int     // units whose Ping or Serve is not done
	holds         int     // topo.Hold without release yet
	next          int     // the unit whose Finish is next
	outputsClosed bool    // its outputs are closed
	awaitingRoom  []*Unit // for room within the group
	lastBusy      *Link   // where messages were seen last
}

// isFull reports whether a queue within a cycle is full, so that nothing is to
// enter it.
func (g *group) isFull() bool { return g.cyclic && g.full.Load() > 0 }

// drained is told that one full queue within the group has room.
func (g *group) drained() {
	if g.full.Add(-1) != 0 {
		return
	}
	g.mu.Lock()
	waiting := g.awaitingRoom
	g.awaitingRoom = nil
	g.mu.Unlock()
	for _, u := range waiting {
		u.signal(controlResume)
	}
}

// await puts u on the list of those that are told of room; false: there is.
func (g *group) await(u *Unit) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.full.Load() == 0 {
		return false
	}
	g.awaitingRoom = append(g.awaitingRoom, u)
	return true
}

// inputClosed is told that one group or sender outside will send no more.
func (g *group) inputClosed() {
	g.mu.Lock()
	g.openInputs--
	g.beginClosing()
}

// sourceDone is told that one unit's Ping or Serve is done.
func (g *group) sourceDone() {
	g.mu.Lock()
	g.sources--
	g.beginClosing()
}

// sourceBegins is told that a unit whose Ping or Serve was done is made anew. It
// reports whether it may send.
func (g *group) sourceBegins() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase != phaseOpen {
		return false
	}
	g.sources++
	return true
}

// beginClosing unlocks g.
func (g *group) beginClosing() {
	if g.phase != phaseOpen || g.openInputs > 0 || g.sources > 0 || g.holds > 0 {
		g.mu.Unlock()
		return
	}
	g.phase = phaseClosing
	g.activity.Add(uint64(len(g.units)) + 1)
	g.mu.Unlock()
	for _, u := range g.units {
		u.signal(controlClosing)
	}
	g.leave(nil)
}

// hold keeps the group from finishing. Call release once for each hold. The handler
// of a queued message may also hold while the group is closing.
func (g *group) hold() {
	g.enter() // first: the group does not begin to finish in between
	g.mu.Lock()
	g.holds++
	g.mu.Unlock()
}

func (g *group) release() {
	g.mu.Lock()
	g.holds--
	g.beginClosing()
	g.leave(nil)
}

// isFinished reports whether all that the group had to do is done.
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
// one: timers close with the last other input, but for an instance that holds work.
func (g *group) ticks() (due, goOn bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.phase == phaseOpen || g.phase == phaseClosing && g.holds > 0, g.phase <= phaseClosing
}

// enter begins what may change the group's queues: a turn of a closing group's
// unit, or a tick.
func (g *group) enter() { g.activity.Add(1<<32 + 1) }

// leave ends it. When nobody may change the queues, and they are empty, they
// stay so, since nothing comes from outside any more. A link within the group
// that was sent along, nil for none, spares the look at all of them: whoever
// takes its messages leaves later.
func (g *group) leave(sent *Link) {
	if turns := g.activity.Add(^uint64(0)); uint32(turns) != 0 || sent != nil && !sent.empty() {
		return
	}
	g.mu.Lock()
	turns := g.activity.Load()
	if uint32(turns) != 0 || g.phase == phaseOpen || g.phase == phaseFinished || !g.allEmpty() || g.activity.Load() != turns {
		g.mu.Unlock()
		return // whoever entered since looks again when it leaves
	}
	if g.phase == phaseClosing {
		g.phase = phaseFinishing
		g.activity.Add(1) // until the last Finish has returned
		g.mu.Unlock()
		g.pool.closeTimers(g) // no tick can come any more
		if g.pool.faulty {
			g.inputsDone()
		}
		g.finishNext()
		return
	}
	g.phase = phaseFinished
	g.mu.Unlock()
	if g.pool.faulty {
		// Within the group they close with it, when there is nobody left to be told.
		g.pool.closeOutputs(func(e *edge) bool { return g.pool.processors[e.From].group == g && !e.inCycle })
	}
	g.closeOutputs()
	g.pool.finished(g)
	g.pool.groupFinished()
}

// closeOutputs tells those that receive from the group that it sends no more, once.
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

// quiet reports whether all queues into the group's units are empty. It looks
// first where it found messages the last time.
func (g *group) allEmpty() bool {
	if bug.On(bug.CloseEarly) {
		return true
	}
	if g.lastBusy != nil && !g.lastBusy.empty() {
		return false
	}
	for _, u := range g.units {
		for l := u.inlinks.Load(); l != nil; l = l.nextIn {
			if !l.empty() {
				g.lastBusy = l
				return false
			}
		}
	}
	return true
}

// finishNext calls the next Finish, one after the other in file order, on the
// worker of its unit; behind the last one it flushes what they sent.
func (g *group) finishNext() {
	g.mu.Lock()
	for g.next < len(g.units) && !g.units[g.next].proc.Finish {
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
	g.leave(nil)
}

// grows ends Run: a queue of a link within the group holds so many messages that
// the cycle seems to send more than it handles.
func (g *group) failGrowing(l *Link, h *queue.Head, depth uint64) {
	p := g.pool
	lengths := make([]int, len(p.edges))
	for _, u := range g.units {
		for in := u.inlinks.Load(); in != nil; in = in.nextIn {
			for _, h := range in.heads {
				lengths[h.Index()] += int(h.Written() - min(h.Taken(), h.Written())) // also what is not yet published
			}
		}
	}
	var b strings.Builder
	for i := range p.edges {
		if e := &p.edges[i]; e.inCycle && p.processors[e.From].group == g {
			fmt.Fprintf(&b, "\n\t%s: %d messages in all its queues", p.edgeName(i), lengths[i])
		}
	}
	p.fail(fmt.Errorf("%w: the queue of %s (instance %d to %d) holds %d messages, the limit is %d. "+
		"Where the cycle is finite, raise the limit: cycle_limit in the section pool of the topology file, TOPOGEN_CYCLE_LIMIT, or pool.CycleLimit. The cycle:%s",
		ErrCycleGrows, p.edgeName(h.Index()), l.From(), l.to.index, depth, p.cycleLimit(h), b.String()))
}
