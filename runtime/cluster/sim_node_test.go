package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
)

// simNode is a node of a simulation: what Node is in a program.
type simNode struct {
	mailbox
	sim          *simulation
	index        int
	name         string
	boot         table.Boot
	began        time.Duration // when its process was started
	state        simState
	settings     settings
	core         *core
	top          *simTop
	stepper      *stepper
	table        table.Table
	detector     *simDetector // nil: the script does its work
	where        *lookup
	coreAt       time.Duration // when core.step must be called
	resumeAt     time.Duration // when a pause ends
	busyUntil    time.Duration // a handler runs until then
	sendAt       time.Duration // when an external processor sends
	active       bool          // an instance may have work
	took         happened      // from the mailbox
	taken        bool
	running      bool // the core runs
	flushed      chan struct{}
	farewell     time.Duration
	result       error
	stopped      bool // its context has ended
	joining      bool // its process was killed before, and needs a majority
	left         bool // it has left while others went on
	isClosed     bool // its gate
	frozen       bool // it never returns
	frozenAt     time.Duration
	delayedUntil time.Duration // by the script
	unread       []func()      // frames that have arrived while the process was paused
	reads        bool          // it reads them soon
}

type simState int

const (
	simWaiting simState = iota // not started
	simRunning
	simEnding // the others learn how the topology has ended
	simGone
)

var simStates = [...]string{"not started", "running", "ending", "gone"}

// stepper is a *piper.Stepper with the time that it has seen.
type stepper struct {
	*piper.Stepper
	now time.Duration
}

func newSimNode(s *simulation, i int) *simNode {
	n := &simNode{mailbox: newMailbox(), sim: s, index: i, name: nodeName(i), boot: table.Boot(s.random.Uint64() | 1)}
	n.mailbox.posted = n.mailArrived
	n.settings = settings{Config: s.config, node: n.name, log: s.log}
	at := time.Duration(0)
	if s.random.IntN(2) == 0 && !s.together {
		at = time.Duration(s.random.Int64N(int64(time.Second)))
	}
	if s.startsLate && s.random.IntN(3) == 0 {
		at += time.Duration(s.random.Int64N(int64(simLateMax)))
		s.counts["late starts"]++
	}
	s.at(at, "start "+n.name, n.start)
	return n
}

// start does what Node.Begin does.
func (n *simNode) start() {
	s := n.sim
	n.state, n.began = simRunning, s.now-time.Duration(s.random.Int64N(int64(time.Hour)))
	c := newNodeCore(&n.settings.Config, n.name, uint64(n.boot), rand.New(rand.NewPCG(s.seed, uint64(100+n.index))), s.log)
	n.core, c.propose = c.core, n.propose
	c.window, c.pairMax, c.leaveAfter = s.window, s.pairMax, s.leaveAfter
	n.core.emit = func(to string, f []byte) { s.transmit(n, to, f) }
	if err := n.startDetector(); err != nil {
		s.fault("%s: %v", n.name, err)
		return
	}
	if entered, err := n.enter(); err != nil {
		s.fault("%s: %v", n.name, err)
		return
	} else if !entered {
		return
	}
	n.stepper = &stepper{Stepper: n.top.pool.Stepper(s.random.Uint64())}
	n.stepper.Trace(func(_ uint64, processor string, instance int) {
		if s.trace.turn(s.now, n.index, processor, instance); n.isClosed {
			s.fault("%s: an instance of %s has a turn behind the gate", n.name, processor)
		}
	})
	n.active, n.coreAt = true, s.now
	n.stepper.now = s.now
	for _, other := range s.nodes {
		if other.state == simRunning {
			other.post(func(h *happened) { h.members = true })
		}
	}
	s.reachRestarted(n)
}

// enter joins the cluster and places the instances, unless its process was killed before, and
// must not.
func (n *simNode) enter() (entered bool, err error) {
	s := n.sim
	n.table = s.tables.of(n.index)
	if n.top, err = s.newTop(n); err != nil || n.isOver() {
		return false, err
	}
	if err = s.bootstrap(n.table, &n.settings); err != nil {
		return false, err
	}
	me := table.Node{Name: n.name, Address: s.config.Nodes[n.name], Boot: n.boot, Plan: s.config.Plan}
	if err = table.Enter(context.Background(), n.table, me); err != nil {
		return false, err
	}
	s.restarts.notes[n.index] = n.boot
	for _, e := range n.top.externals {
		if e != nil && s.clientsOnly {
			e.isClosed = true // the processor stays open, and sends nothing
		}
	}
	if n.where, err = newLookup(&n.settings, n.table.Replica()); err != nil {
		return false, err
	}
	n.where.enter(n.boot)
	if err = n.top.border.Place(n.where.isHere); err != nil {
		return false, err
	}
	n.core.begin(n.top.border, n.places())
	return true, nil
}

// Begin and End implement border.Nodes. The pool of a Stepper does not call them.
func (n *simNode) Begin(context.Context, *border.Border) error { return nil }
func (n *simNode) End(error)                                   {}

// Find implements border.Nodes.
func (n *simNode) Find(node string) (here, known bool) { return n.where.find(node) }

// Others implements border.Nodes.
func (n *simNode) Others() int { return len(n.where.nodes()) - 1 }

// FencingToken implements border.Nodes.
func (n *simNode) FencingToken(processor, instance int) uint64 {
	if n.where == nil {
		return 0 // it has not joined
	}
	return n.where.FencingToken(processor, instance)
}

// delay notes that the script delays the node.
func (n *simNode) delay(until time.Duration) { n.delayedUntil = max(n.delayedUntil, until) }

// busy lets the current call take some time.
func (n *simNode) busy(d time.Duration) { n.busyUntil = max(n.busyUntil, n.sim.now+d) }

// deliver puts a frame into the mailbox. While the process is paused, frames wait in its
// sockets.
func (n *simNode) deliver(from *simNode, p packet) {
	if n.resumeAt > n.sim.now || len(n.unread) > 0 {
		n.unread = append(n.unread, func() { n.receivePacket(from, p) })
		return
	}
	n.receivePacket(from, p)
}

// readsMax is the time that a process needs after a pause until it reads its sockets. Its
// timers may come first.
const readsMax = 10 * time.Millisecond

// readSoon lets the process read its sockets after a pause.
func (n *simNode) readSoon() {
	if len(n.unread) == 0 || n.reads || n.frozen || n.resumeAt > n.sim.now {
		return
	}
	n.reads = true
	n.sim.at(n.sim.now+time.Duration(n.sim.random.Int64N(int64(readsMax))), n.name+" reads its sockets", func() {
		list := n.unread
		n.reads, n.unread = false, nil
		for _, read := range list {
			read()
		}
	})
}

func (n *simNode) receivePacket(from *simNode, p packet) {
	if p.member {
		if n.detector != nil && n.state != simGone {
			n.detector.inbox = append(n.detector.inbox, frame{from: from.name, data: p.data})
		}
		return
	}
	if n.state == simRunning || n.state == simEnding {
		n.receive(from.name, [][]byte{p.data})
	}
}

// mailArrived runs the core at once, now and then: Node does so if no other goroutine runs
// the core.
func (n *simNode) mailArrived() {
	if n.core == nil || n.top == nil || n.frozen || n.running || n.taken || n.sim.random.IntN(2) == 0 || n.state != simRunning && n.state != simEnding {
		return
	}
	n.sim.trace.step(n.sim.now, choiceCore, n.index, 1, 1)
	n.runCore()
}

// runCore is one round of Node.step.
func (n *simNode) runCore() {
	n.running = true
	defer func() { n.running = false }()
	if n.mailbox.busy && !n.taken {
		n.take(&n.took)
		if n.taken = true; n.sim.random.IntN(4) == 0 {
			return // workers run before the core looks at what it has taken
		}
	}
	h := n.took
	n.took, n.taken = happened{}, false
	now := n.sim.now - n.began
	n.core.step(now, &h)
	n.checkPlaces()
	n.coreAt = time.Duration(1<<63 - 1)
	if at, ok := n.core.next(); ok {
		if n.coreAt = n.began + at; at <= now && !n.mailbox.busy {
			n.sim.fault("%s: the core must be called again at %v, and the time is %v", n.name, at, now)
		}
	}
	for _, p := range n.core.ordered {
		if p.session.Waits() && p.session.Stats().UnackedFrames > 0 {
			n.sim.counts["full sessions"]++
		}
	}
	n.active = true
	if n.state == simEnding && n.flushed != nil {
		select {
		case <-n.flushed:
			n.end()
		default:
		}
	}
}

// turn gives an instance a turn.
func (n *simNode) turn() {
	if n.active = n.stepper.Turn(); n.active && n.sim.turn > 0 {
		n.busy(time.Duration(n.sim.random.Int64N(int64(n.sim.turn))))
	}
	if !n.stepper.Ended() {
		return
	}
	s := n.sim
	n.result = n.stepper.Err()
	n.sim.trace.note(n.sim.now, fmt.Sprintf("%s: the topology has ended: %v", n.name, n.result))
	if n.left = n.core.left; n.left && s.together && !s.loose() && s.endings == 0 {
		s.fault("%s leaves although all nodes were stopped", n.name)
	}
	s.endings++
	s.point(n)
	if s.cutAtEnd > 0 {
		s.partition(1<<n.index, true)
		s.at(s.now+s.cutAtEnd, n.name+" can be reached again", func() { s.partition(1<<n.index, false) })
		s.until = max(s.until, s.now+s.cutAtEnd+simEndsWithin)
		s.cutAtEnd = 0
	}
	n.state, n.farewell = simEnding, n.sim.now+min(s.config.farewell(n.result == nil), simEndsWithin/2)
	n.flushed = make(chan struct{})
	n.post(func(h *happened) { h.ended, h.result, h.flushed = true, n.result, n.flushed })
}

func (n *simNode) send(of int) {
	pause := n.sim.turn * 4
	if !n.top.externals[of].act(n.top, of) {
		pause = time.Second / 100 // there is no room
	}
	n.active = true
	n.sendAt = n.sim.now + time.Duration(n.sim.random.Int64N(int64(pause+time.Microsecond)))
}

// end ends the process.
func (n *simNode) end() {
	s := n.sim
	n.state = simGone
	s.point(n)
	if n.index < s.design.nodes {
		s.restarts.notes[n.index] = 0
	}
	s.trace.note(s.now, n.name+" ends")
	if n.table != nil { // a client has none
		_ = n.table.Close()
	}
	if n.detector != nil {
		n.detector.core.Leave(s.now - n.began)
		n.detector.effects()
		return
	}
	for _, other := range s.nodes {
		if other != n {
			s.at(s.now+time.Duration(s.random.Int64N(int64(time.Second))), other.name+" learns that "+n.name+" has ended", func() { other.report(n, false) })
		}
	}
}

// report tells the node what its failure detector says about another one.
func (n *simNode) report(about *simNode, reachable bool) {
	if reachable && (about.state == simGone || about.frozen) || n.state != simRunning && n.state != simEnding {
		return
	}
	n.post(func(h *happened) {
		h.alive = append(h.alive, alive{node: about.name, alive: reachable, left: about.state == simGone})
	})
}

// next returns when something may happen on the node.
func (n *simNode) next() (at time.Duration, ok bool) {
	if n.state == simGone || n.state == simWaiting || n.frozen {
		return 0, false
	}
	at = n.coreAt
	if n.detector != nil {
		at = min(at, n.detector.next())
	}
	if n.mailbox.busy || n.taken {
		at = n.sim.now
	}
	if n.state == simRunning {
		if d, timer := n.stepper.Next(); timer {
			at = min(at, n.stepper.now+d)
		}
		if n.active && n.busyUntil > n.sim.now {
			at = min(at, n.busyUntil)
		}
		for _, e := range n.top.externals {
			if e != nil && !e.isClosed {
				at = min(at, max(n.sendAt, n.busyUntil))
			}
		}
	} else {
		at = min(at, n.farewell)
	}
	return max(at, n.resumeAt), true
}

// setTime tells the node the time.
func (n *simNode) setTime() {
	switch {
	case n.frozen:
	case n.state == simRunning && n.stepper.now < n.sim.now && n.resumeAt <= n.sim.now:
		if d, ok := n.stepper.Next(); ok && n.stepper.now+d <= n.sim.now {
			n.active = true
		}
		n.stepper.Skip(n.sim.now - n.stepper.now)
		n.stepper.now = n.sim.now
	case n.state == simEnding && n.farewell <= n.sim.now && n.resumeAt <= n.sim.now:
		n.end()
	}
}

// stop ends the context of the node's Run, as SIGTERM does.
func (n *simNode) stop() {
	if n.state == simWaiting {
		n.sim.at(n.sim.now+time.Second, "stop "+n.name, n.stop)
	}
	if n.state == simRunning && !n.stopped && !n.frozen {
		n.stopped = true
		n.stepper.Stop()
		n.active = true
		for _, e := range n.top.externals {
			if e != nil {
				e.isClosed = true
			}
		}
	}
}
