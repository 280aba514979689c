package member

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/transport"
)

// tb is the part of a *testing.T that a *rapid.T has, too.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is a simulated cluster: cores, a network with faults, and virtual time.
type world struct {
	t     tb
	rng   *rand.Rand
	now   time.Duration
	net   *transport.Network[[]byte]
	nodes []*simNode
	due   schedule
	print func(format string, args ...any) // nil: no transcript

	sent int // messages

	onEvent func(n *simNode, e Event)
}

// simNode is a process, or the place where it was. Its number is its place in the list.
type simNode struct {
	world   *world
	number  int
	name    string
	place   string // the address without "at-"; the name, except for duplicates
	boots   int
	start   time.Duration
	core    *Core // nil: not running
	config  Config
	first   map[string]string
	resumes time.Duration // when a pause ends
	queue   []packet      // messages that arrived in a pause
	at      time.Duration // of its entry in the schedule
	index   int           // in the schedule; -1: none
}

type packet struct {
	from    string
	payload []byte
}

// newWorld returns a world whose messages take half a millisecond to one.
func newWorld(t tb, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1))}
	w.net = transport.NewNetwork[[]byte](rand.New(rand.NewPCG(seed, 2)), delays(0))
	return w
}

func delays(loss float64) transport.Faults {
	return transport.Faults{Loss: loss, DelayMin: int64(500 * time.Microsecond), DelayMax: int64(time.Millisecond)}
}

func (w *world) loss(loss float64) { w.net.SetFaults(delays(loss)) }

// add adds a node that does not run.
func (w *world) add(name string, c Config, first ...string) *simNode {
	n := &simNode{world: w, number: len(w.nodes), name: name, place: name, config: c, first: make(map[string]string), index: -1}
	for _, f := range first {
		n.first[f] = "at-" + f
	}
	w.nodes = append(w.nodes, n)
	return n
}

// cluster adds and starts nodes n1, n2, … whose first members are the first three, and
// runs them until all know all.
func cluster(t tb, seed uint64, n int, c Config) *world {
	w := newWorld(t, seed)
	for i := range n {
		w.add(fmt.Sprintf("n%d", i+1), c, "n1", "n2", "n3")
	}
	if n < 3 {
		for _, x := range w.nodes {
			delete(x.first, "n3")
			if n < 2 {
				delete(x.first, "n2")
			}
		}
	}
	for _, x := range w.nodes {
		x.boot()
	}
	w.until("all nodes know all", time.Minute, func() bool { return w.agree(Alive, w.nodes...) })
	return w
}

// boot starts a process.
func (n *simNode) boot() {
	n.boots++
	n.bootAs(uint64(n.boots) * 1000)
}

func (n *simNode) bootAs(boot uint64) {
	n.start = n.world.now
	rng := rand.New(rand.NewPCG(n.world.rng.Uint64(), 3))
	core, err := NewCore(Node{Name: n.name, Address: "at-" + n.place, Boot: boot}, n.first, n.config, rng)
	if err != nil {
		n.world.t.Fatal(err)
	}
	n.core, n.queue, n.resumes = core, nil, 0
	n.effects()
}

// kill ends a process at once.
func (n *simNode) kill() {
	n.core = nil
	n.world.reschedule(n)
}

// pause stops a process like SIGSTOP. Its messages wait.
func (n *simNode) pause(d time.Duration) {
	n.resumes = n.world.now + d
	n.world.reschedule(n)
}

func (n *simNode) age() time.Duration { return n.world.now - n.start }

// run handles what is due.
func (n *simNode) run() {
	w := n.world
	if n.core == nil || w.now < n.resumes {
		return
	}
	tick := func() {
		if n.age() >= n.core.Next() {
			n.core.Tick(n.age())
		}
	}
	first := w.rng.IntN(2) == 0
	if first {
		tick()
	}
	for _, p := range n.queue {
		if err := n.core.Step(n.age(), p.from, p.payload); err != nil {
			w.t.Fatal(err)
		}
	}
	n.queue = nil
	if !first {
		tick()
	}
	n.effects()
}

// effects carries out the effects of a core.
func (n *simNode) effects() {
	w := n.world
	messages, events := n.core.Take()
	for _, e := range events {
		if w.print != nil {
			w.print("%v %s: %s", w.now, n.name, describeEvent(e))
		}
		if w.onEvent != nil {
			w.onEvent(n, e)
		}
	}
	for _, m := range messages {
		w.sent++
		if to := w.listener(m.Address); to != nil {
			w.net.Send(int64(w.now), n.number, to.number, m.Payload)
		}
	}
	w.reschedule(n)
}

// listener returns the node with an address, which is "at-" and its place. The node n7 is
// usually the seventh.
func (w *world) listener(address string) *simNode {
	for i := len(address) - 1; i >= 0; i-- {
		if address[i] == 'n' {
			number := 0
			for _, digit := range address[i+1:] {
				number = 10*number + int(digit-'0')
			}
			if number >= 1 && number <= len(w.nodes) && "at-"+w.nodes[number-1].place == address {
				return w.nodes[number-1]
			}
		}
	}
	for _, n := range w.nodes {
		if address == "at-"+n.place {
			return n
		}
	}
	return nil
}

// deliver hands messages that have arrived to their receivers.
func (w *world) deliver() {
	for {
		from, to, payload, ok := w.net.Deliver(int64(w.now))
		if !ok {
			return
		}
		n := w.nodes[to]
		if n.core == nil {
			continue
		}
		if w.print != nil {
			w.print("%v %s->%s %s", w.now, w.nodes[from].name, n.name, describe(payload))
		}
		n.queue = append(n.queue, packet{w.nodes[from].name, payload})
		n.run()
	}
}

// step runs until the next moment at which something happens, at most until a time, and reports
// whether that time was reached.
func (w *world) step(end time.Duration) bool {
	next := end
	if at, ok := w.net.Next(); ok {
		next = min(next, time.Duration(at))
	}
	if len(w.due) > 0 {
		next = min(next, w.due[0].at)
	}
	w.now = max(w.now, next)
	w.deliver()
	for len(w.due) > 0 && w.due[0].at <= w.now {
		w.due[0].run()
	}
	return w.now >= end
}

func (w *world) run(d time.Duration) {
	for end := w.now + d; !w.step(end); {
	}
}

// until runs until a condition holds, which is checked every 50 ms, and returns how long
// that took.
func (w *world) until(what string, limit time.Duration, holds func() bool) time.Duration {
	w.t.Helper()
	start := w.now
	for !holds() {
		if w.now >= start+limit {
			w.t.Fatalf("%s: not within %v\n%s", what, limit, w.summary())
		}
		w.run(50 * time.Millisecond)
	}
	return w.now - start
}

// agree reports whether all running nodes have all the given nodes in a state.
func (w *world) agree(s State, about ...*simNode) bool {
	for _, n := range w.nodes {
		for _, a := range about {
			if n.core != nil && a != n && n.stateOf(a.name) != s {
				return false
			}
		}
	}
	return true
}

// stateOf returns the state of a member in the list of a node. Unknown members, and first
// members that were never heard, count as Left.
func (n *simNode) stateOf(name string) State {
	if p := n.core.peers[name]; p != nil && p.boot > 0 {
		return p.state
	}
	return Left
}

// summary lists what nodes think about members that are not alive.
func (w *world) summary() (text string) {
	for _, n := range w.nodes {
		if n.core == nil || len(text) > 4000 {
			continue
		}
		if len(w.nodes) > 20 && n.core.count[Alive] == len(w.nodes)-1 {
			continue
		}
		text += fmt.Sprintf("%s: %d alive, fenced %v, health %d;", n.name, n.core.count[Alive], n.core.fenced, n.core.health)
		for _, m := range n.core.Members() {
			if m.State != Alive {
				text += fmt.Sprintf(" %s %v", m.Name, m.State)
			}
		}
		text += "\n"
	}
	return text
}

// reschedule updates the time at which a node must run.
func (w *world) reschedule(n *simNode) {
	at := forever
	if n.core != nil {
		if at = n.core.Next(); at < forever {
			at += n.start
		}
		if len(n.queue) > 0 && n.resumes > 0 {
			at = n.resumes
		}
		at = max(at, n.resumes)
	}
	switch {
	case at == forever && n.index >= 0:
		heap.Remove(&w.due, n.index)
	case at == forever:
	case n.index >= 0:
		n.at = at
		heap.Fix(&w.due, n.index)
	default:
		n.at = at
		heap.Push(&w.due, n)
	}
}

// schedule is a heap of nodes by time.
type schedule []*simNode

func (s schedule) Len() int { return len(s) }
func (s schedule) Less(i, j int) bool {
	return s[i].at < s[j].at || s[i].at == s[j].at && s[i].number < s[j].number
}
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}
func (s *schedule) Push(x any) {
	n := x.(*simNode)
	n.index = len(*s)
	*s = append(*s, n)
}
func (s *schedule) Pop() any {
	old := *s
	n := old[len(old)-1]
	n.index = -1
	*s = slices.Delete(old, len(old)-1, len(old))
	return n
}
