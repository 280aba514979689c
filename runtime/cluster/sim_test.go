package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/transport"
)

// simulation is a cluster in one goroutine and in virtual time: the real cores, pools and
// sessions of all nodes, on a network with faults. The seed determines everything.
type simulation struct {
	casts int // most nodes that messages for all nodes were on their way to at a time

	seed   uint64
	random *rand.Rand
	design *design
	nodes  []*simNode
	net    *transport.Network[packet]
	tables *simTables
	cut    map[[2]int]bool // links of the network that are cut
	restarts
	config  Config
	log     *slog.Logger
	now     time.Duration
	until   time.Duration // when the run must have ended
	script  []event       // what happens to nodes and the network, by time
	healed  bool
	turn    time.Duration // most time that a turn takes without a slow handler
	trace   trace
	ledger  ledger
	faults  []string
	steps   int
	choices []choice
	counts  map[string]int

	window      int // frames of each session that are not acknowledged; 0: the usual window
	pairMax     int // messages of each pair that wait on the receiving node
	leaveAfter  time.Duration
	profile     string                    // of the failure detection; "": the script says which nodes can be reached
	cutAtEnd    time.Duration             // how long the first node that ends is cut off; 0: it is not
	closing     func()                    // called when the first group is quiet
	endings     int                       // nodes whose topology has ended
	startsLate  bool                      // some nodes start long after the others
	onSent      func(edge int, m *parcel) // may be nil, like the next one
	onReceived  func(edge int, m *parcel)
	undecodable func(m *parcel) bool               // messages that cannot be decoded; may be nil
	misplaced   float64                            // part of the instances that a node looks for on another node than theirs, for some time
	wrong       func(n *simNode) map[[2]int]string // such instances of a given topology; may be nil
	clientsOnly bool                               // the external processors of nodes send nothing
	forgets     bool                               // nodes forget clients, which then drop what they have sent
	together    bool                               // all nodes are stopped at the same time, and can reach each other
}

// packet is a message in the network.
type packet struct {
	boot   uint64 // of the sending process
	data   []byte
	member bool // of the failure detection
}

// event is something that happens at a time.
type event struct {
	at   time.Duration
	what string
	do   func()
}

// choice is something that may happen next.
type choice struct {
	kind byte
	node *simNode
	of   int
}

const (
	choiceCore     = 'c'             // the goroutine of a node handles its mailbox
	choiceTurn     = 't'             // an instance gets a turn
	choiceSend     = 's'             // an external processor sends
	choiceMember   = 'm'             // the failure detection of a node runs
	choiceDeliver  = 'd'             // the network delivers a message
	simStepsMax    = 10_000_000      // a drain of nodes that are busy all the time takes some million
	simEndsWithin  = 5 * time.Minute // after the network has healed
	simCheckEvery  = 256             // steps between two looks at all counters
	simFaultsShown = 10
)

// newSimulation draws a topology, and what happens to it.
func newSimulation(seed uint64) *simulation {
	draw := rand.New(rand.NewPCG(seed, 2))
	s := simulate(seed, drawDesign(draw, 1+draw.IntN(7)))
	s.turn = []time.Duration{0, time.Microsecond, 50 * time.Microsecond, time.Millisecond}[draw.IntN(4)]
	s.draw(draw)
	s.config.Neighborhood = draw.IntN(4)
	if draw.IntN(3) == 0 {
		s.window = 1 + draw.IntN(1+draw.IntN(20))
	}
	if draw.IntN(3) == 0 {
		s.pairMax = 2*s.design.batch + draw.IntN(20)
	}
	s.drawGates(rand.New(rand.NewPCG(seed, 5))) // of its own, so that the other faults stay the same
	return s
}

// simulate makes a simulation of a topology without faults.
func simulate(seed uint64, d *design) *simulation {
	s := &simulation{
		seed: seed, random: rand.New(rand.NewPCG(seed, 1)), cut: map[[2]int]bool{}, counts: map[string]int{},
		design: d, config: d.config(), ledger: newLedger(d), leaveAfter: leaveAfter, until: simEndsWithin,
		net: transport.NewNetwork[packet](rand.New(rand.NewPCG(seed, 3)), transport.Faults{}),
	}
	s.config.Retry = Retry{Timeout: neverExpires, Min: session.RetryMinDefault, Max: session.RetryMaxDefault}
	s.log = slog.New(simLog{s})
	s.tables, s.restarts.notes = newSimTables(s), map[int]table.Boot{}
	return s
}

// fault records a violated guarantee.
func (s *simulation) fault(format string, args ...any) {
	if len(s.faults) < simFaultsShown {
		s.faults = append(s.faults, fmt.Sprintf("at %v: ", s.now)+fmt.Sprintf(format, args...))
	}
}

// run runs the cluster to its end.
func (s *simulation) run() {
	defer func() {
		if cause := recover(); cause != nil {
			s.fault("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	for i := range s.design.nodes {
		s.nodes = append(s.nodes, newSimNode(s, i))
	}
	for len(s.faults) == 0 && !s.ended() {
		if s.steps++; s.steps > simStepsMax {
			s.fault("the run does not end: %d steps", s.steps)
			return
		}
		if s.steps%simCheckEvery == 0 {
			s.checkCounters()
		}
		for len(s.script) > 0 && s.script[0].at <= s.now {
			e := s.script[0]
			s.script = s.script[1:]
			s.trace.note(s.now, e.what)
			e.do()
		}
		if s.choose(); len(s.choices) > 0 {
			s.act(s.choices[s.random.IntN(len(s.choices))])
			continue
		}
		if !s.advance() {
			s.fault("nothing can happen any more")
		}
	}
	if len(s.faults) == 0 {
		s.checkEnd()
	}
}

func (s *simulation) ended() bool {
	for _, n := range s.nodes {
		if n.state != simGone && !n.frozen {
			return false
		}
	}
	return true
}

// choose lists what may happen now.
func (s *simulation) choose() {
	s.choices = s.choices[:0]
	if at, ok := s.net.Next(); ok && at <= int64(s.now) {
		s.choices = append(s.choices, choice{kind: choiceDeliver})
	}
	for _, n := range s.nodes {
		n.readSoon()
		if n.state == simGone || n.state == simWaiting || n.frozen || n.resumeAt > s.now {
			continue
		}
		if n.mailbox.busy || n.taken || n.coreAt <= s.now {
			s.choices = append(s.choices, choice{kind: choiceCore, node: n})
		}
		if n.detector != nil && n.detector.due() {
			s.choices = append(s.choices, choice{kind: choiceMember, node: n})
		}
		if n.busyUntil > s.now {
			continue
		}
		if n.active && n.state == simRunning {
			s.choices = append(s.choices, choice{kind: choiceTurn, node: n})
		}
		for of, e := range n.top.externals {
			if e != nil && !e.isClosed && n.state == simRunning && n.sendAt <= s.now {
				s.choices = append(s.choices, choice{kind: choiceSend, node: n, of: of})
			}
		}
	}
}

func (s *simulation) act(c choice) {
	switch c.kind {
	case choiceDeliver:
		from, to, p, ok := s.net.Deliver(int64(s.now))
		if !ok {
			return
		}
		kind := c.kind
		if p.member {
			kind = kindProbe
		}
		s.trace.step(s.now, kind, from, to, len(p.data))
		s.nodes[to].deliver(s.nodes[from], p)
	case choiceCore:
		mail := 0
		if c.node.mailbox.busy || c.node.taken {
			mail = 1
		}
		s.trace.step(s.now, c.kind, c.node.index, mail, 0)
		c.node.runCore()
	case choiceMember:
		c.node.detector.run()
	case choiceTurn:
		c.node.turn()
	case choiceSend:
		s.trace.step(s.now, c.kind, c.node.index, c.of, 0)
		c.node.send(c.of)
	}
}

// advance advances the clock to the next moment at which something may happen.
func (s *simulation) advance() bool {
	at := time.Duration(1<<63 - 1)
	if t, ok := s.net.Next(); ok {
		at = min(at, time.Duration(t))
	}
	if len(s.script) > 0 {
		at = min(at, s.script[0].at)
	}
	for _, n := range s.nodes {
		if t, ok := n.next(); ok {
			at = min(at, t)
		}
	}
	if at == 1<<63-1 {
		return false
	}
	if at > s.until {
		s.now = s.until
		s.fault("the run does not end in time")
		return true
	}
	s.now = max(s.now, at)
	for _, n := range s.nodes {
		n.setTime()
	}
	return true
}

// at adds an event to the script.
func (s *simulation) at(at time.Duration, what string, do func()) {
	i := len(s.script)
	for i > 0 && s.script[i-1].at > at {
		i--
	}
	s.script = append(s.script, event{})
	copy(s.script[i+1:], s.script[i:])
	s.script[i] = event{at, what, do}
}

// failure describes what was wrong, or returns "".
func (s *simulation) failure() string {
	if len(s.faults) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s\n%s", s.seed, strings.Join(s.faults, "\n"), s.design)
	fmt.Fprintf(&b, "retry.timeout %v\n", s.config.Retry.Timeout)
	for _, n := range s.nodes {
		b.WriteString(n.describe())
	}
	b.WriteString("the last steps:\n" + s.trace.String())
	return b.String()
}

// bootstrap defines the first placement in the address table.
func (s *simulation) bootstrap(t table.Table, set *settings) error {
	var first []table.Node
	for i := range s.design.nodes {
		first = append(first, table.Node{Name: nodeName(i), Address: s.config.Nodes[nodeName(i)]})
	}
	return table.Bootstrap(context.Background(), t, set.plan(), set.placements(), first)
}
