package cluster

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
)

// phases is a pool without instances. Its groups are quiet in each of their phases.
type phases struct {
	open     bool // no group is quiet
	looks    int  // calls of IsIdle
	busy     bool // an instance has something to do
	closed   bool // no external sender accepts messages
	groups   []uint8
	external bool // the last group is that of an external processor
}

func (p *phases) Arrivals(border.GuestKey, int, int) (*border.Arrivals, error) {
	return nil, errors.New("there are no instances")
}

func (p *phases) Agree(group int, phase uint8) {
	switch {
	case p.open || p.groups[group] != phase:
	case phase == piper.GroupClosing:
		p.groups[group] = piper.GroupFlushing
	default:
		p.groups[group] = piper.GroupFinished
	}
}

func (p *phases) Group(i int) piper.GroupState {
	phase := p.groups[i]
	return piper.GroupState{Phase: phase, Quiet: !p.open && phase != piper.GroupFinished, Empty: p.external && i == len(p.groups)-1}
}

func (p *phases) Groups() int          { return len(p.groups) }
func (p *phases) GroupOf(int) int      { return 0 }
func (p *phases) IsClosed() bool       { return p.closed }
func (p *phases) StopTimers()          {}
func (p *phases) RefuseLate()          {}
func (p *phases) Needed([]bool) []bool { return make([]bool, len(p.groups)) }
func (p *phases) Fail(error)           {}
func (p *phases) Leave()               {}

func (p *phases) IsFull(int) (full, hadRoom bool) { return false, true }
func (p *phases) HoldBack(int, bool)              {}

func (p *phases) IsIdle() bool {
	p.looks++
	return !p.busy
}

func (p *phases) finished() bool {
	return !slices.ContainsFunc(p.groups, func(phase uint8) bool { return phase != piper.GroupFinished })
}

// phaseNodes are nodes that only agree on the phases of their groups. Their address table is in
// memory.
type phaseNodes struct {
	t      *testing.T
	now    time.Duration
	boots  uint64
	first  []string
	nodes  []string // by name
	tables *table.Memory
	cores  map[string]*nodeCore
	pools  map[string]*phases
	frames map[string][]frame    // that have not arrived, by node
	result map[string][]proposed // that the core has not seen, by node

	lost func(from, to string) bool // reports whether a frame is lost
	late func() bool                // reports whether the result of a proposal is lost, so that the driver repeats it
	open map[string]*proposal       // proposals that the driver runs, by node
}

func newPhaseNodes(t *testing.T, names ...string) *phaseNodes {
	return &phaseNodes{
		t: t, first: names, nodes: slices.Clone(names), tables: table.NewMemory(), cores: map[string]*nodeCore{}, pools: map[string]*phases{}, frames: map[string][]frame{}, result: map[string][]proposed{}, open: map[string]*proposal{},
		lost: func(string, string) bool { return false }, late: func() bool { return false },
	}
}

// start starts a process of a node.
func (n *phaseNodes) start(name string) *phases {
	c := newNodeCore(phasesConfig, name, n.nextBoot(), rand.New(rand.NewPCG(1, n.boots)), slog.New(slog.DiscardHandler))
	c.propose = func(p proposal) { n.open[name] = &p }
	n.cores[name], n.result[name], n.open[name] = c, nil, nil
	if !slices.Contains(n.nodes, name) {
		n.nodes = append(n.nodes, name)
		slices.Sort(n.nodes)
	}
	return n.begin(c.core)
}

// startClient starts a client.
func (n *phaseNodes) startClient(name string) (*core, *phases) {
	c := newClientCore(phasesConfig, name, n.nextBoot(), rand.New(rand.NewPCG(1, n.boots)), slog.New(slog.DiscardHandler))
	return c.core, n.begin(c.core)
}

var phasesConfig = &Config{Topology: "phases", Retry: Retry{Timeout: time.Minute, Min: 50 * time.Millisecond, Max: time.Second}}

func (n *phaseNodes) nextBoot() uint64 {
	n.boots++
	return n.boots
}

// begin connects a core with the others.
func (n *phaseNodes) begin(c *core) *phases {
	name := c.node
	c.emit = func(to string, f []byte) {
		if !n.lost(name, to) {
			n.frames[to] = append(n.frames[to], frame{from: name, data: slices.Clone(f)})
		}
	}
	pool := &phases{groups: []uint8{piper.GroupClosing, piper.GroupClosing}}
	c.begin(pool, n.enter(name, table.Boot(n.boots)))
	n.pools[name], n.frames[name] = pool, nil
	return pool
}

// enter enters a process in the address table, and returns what the node reads there.
func (n *phaseNodes) enter(name string, boot table.Boot) *lookup {
	var first []table.Node
	for _, name := range n.first {
		first = append(first, table.Node{Name: name})
	}
	at := n.tables.Open()
	where, err := newLookup(&settings{node: name}, at.Replica())
	if err == nil {
		err = table.Bootstrap(context.Background(), at, table.Plan{Hash: "plan"}, nil, first)
	}
	if err == nil {
		err = table.Enter(context.Background(), at, table.Node{Name: name, Boot: boot, Plan: "plan"})
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return where
}

// kill ends a process of a node.
func (n *phaseNodes) kill(name string) { n.cores[name], n.open[name] = nil, nil }

// step lets a node do what is due. It says which groups are quiet.
func (n *phaseNodes) step(name string) {
	c := n.cores[name]
	if c == nil {
		return
	}
	h := &happened{frames: n.frames[name], proposed: n.result[name], members: true}
	n.frames[name], n.result[name] = nil, nil
	for i := range c.pool.Groups() {
		h.quiet = append(h.quiet, i)
	}
	c.step(n.now, h)
	if p := n.open[name]; p != nil {
		n.runProposal(name, p)
	}
}

// runProposal does what the driver of the core does.
func (n *phaseNodes) runProposal(name string, p *proposal) {
	at := n.tables.Open()
	defer func() { _ = at.Close() }()
	_, err := at.Txn(context.Background(), p.guards, []table.Change{p.agree})
	if err == nil {
		n.checkAgreed(at.Replica(), p)
	}
	if n.late() {
		return // ErrUnknown: it is repeated
	}
	n.open[name] = nil
	n.result[name] = append(n.result[name], proposed{*p, err == nil})
}

// checkAgreed checks that the groups of a proposal are quiet on all nodes, or have gone on.
func (n *phaseNodes) checkAgreed(r *table.Replica, p *proposal) {
	for _, g := range p.agree.Groups {
		for _, node := range r.Nodes() {
			pool := n.pools[node.Name]
			if pool == nil || pool.groups[g.Group] < g.Phase || pool.groups[g.Group] == g.Phase && pool.open {
				n.t.Errorf("at %v: the table says that group %d has ended phase %d, and node %s is in %+v", n.now, g.Group, g.Phase, node.Name, pool)
			}
		}
	}
}

// run lets the nodes exchange messages for some time.
func (n *phaseNodes) run() { n.runFor(10 * time.Second) }

func (n *phaseNodes) runFor(d time.Duration) {
	for end := n.now + d; n.now < end; n.now += 10 * time.Millisecond {
		for _, name := range n.nodes {
			n.step(name)
		}
	}
}

// TestRestartedNodesFinish restarts a node, which may be the coordinator, when a group has
// finished. The group must finish in the new process as well.
func TestRestartedNodesFinish(t *testing.T) {
	for _, restarted := range []string{"n1", "n2", "n3"} {
		t.Run(restarted, func(t *testing.T) {
			n := newPhaseNodes(t, "n1", "n2", "n3")
			for _, name := range n.nodes {
				n.start(name)
			}
			n.run()
			for name, p := range n.pools {
				if !p.finished() {
					t.Fatalf("%s: the groups are in the phases %d before the restart", name, p.groups)
				}
			}
			p := n.start(restarted)
			p.open = true // it has to do everything again
			n.run()
			p.open = false
			n.run()
			if !p.finished() {
				t.Errorf("the groups are in the phases %d after the restart", p.groups)
			}
		})
	}
}

// TestAnswersAndReports: an answer that a group is not quiet removes the report of its node. A report of a later phase
// stays, because the node does not repeat it.
func TestAnswersAndReports(t *testing.T) {
	for reported, stays := range map[uint8]bool{piper.GroupClosing: false, piper.GroupFlushing: true} {
		a := newAgreement(nil, 1)
		g := &a.groups[0]
		g.round, g.phase, g.asked = 1, piper.GroupClosing, map[string]uint32{"n2": 0, "n3": 0}
		g.status = map[string]groupMessage{"n2": {phase: reported, quiet: true}}
		a.recordAnswer(g, "n2", groupMessage{phase: piper.GroupFlushing, round: 1, quiet: true})
		if _, ok := g.status["n2"]; ok != stays || !g.changed {
			t.Errorf("phase %d was reported: the report stays: %v, want %v", reported, ok, stays)
		}
	}
}

// TestNodesAfterTheCoordinator: the coordinator is restarted, or a node joins whose name sorts first, in each
// phase of a group. The group must finish on all nodes.
func TestNodesAfterTheCoordinator(t *testing.T) {
	for _, name := range []string{"n1", "n0"} {
		for steps := range 12 {
			n := newPhaseNodes(t, "n1", "n2", "n3")
			for _, first := range n.first {
				n.start(first)
			}
			n.runFor(time.Duration(steps) * 10 * time.Millisecond)
			before := slices.Clone(n.pools["n2"].groups)
			p := n.start(name)
			p.open = true
			n.runFor(3 * time.Second)
			p.open = false
			n.runFor(3 * time.Second)
			for node, p := range n.pools {
				if !p.finished() {
					t.Errorf("%s is started when the groups of n2 are in the phases %d: those of %s end in the phases %d", name, before, node, p.groups)
				}
			}
		}
	}
}

// TestAllNodesRestart starts all nodes again, after the topology has finished or in a phase of a
// group. The topology runs again: no group goes on before it is quiet on all nodes.
func TestAllNodesRestart(t *testing.T) {
	for steps := range 25 {
		n := newPhaseNodes(t, "n1", "n2", "n3")
		for range 2 {
			for _, name := range n.first {
				n.kill(name)
			}
			for _, name := range n.first {
				n.start(name).open = name == "n3"
				n.runFor(20 * time.Millisecond) // the others have not started yet
			}
			n.runFor(3 * time.Second)
			for _, name := range n.first {
				if p := n.pools[name]; p.groups[0] != piper.GroupClosing || p.groups[1] != piper.GroupClosing {
					t.Fatalf("after %d steps of the first run: the groups of %s are in the phases %d although n3 is not quiet", steps, name, p.groups)
				}
			}
			n.pools["n3"].open = false
			n.runFor(time.Duration(steps) * 10 * time.Millisecond)
		}
		n.runFor(3 * time.Second)
		for name, p := range n.pools {
			if !p.finished() {
				t.Errorf("after %d steps of the first run: the groups of %s end in the phases %d", steps, name, p.groups)
			}
		}
	}
}

// TestRandomAgreements restarts nodes and lets nodes join at random times, loses frames and results of transactions.
// Each run must end, and no group goes on before it is quiet on all nodes.
func TestRandomAgreements(t *testing.T) {
	speed.NoRace(t)
	first, end := speed.Seeds(t, 40, 500, 20_000)
	for seed := first; seed < end && !t.Failed(); seed++ {
		r := rand.New(rand.NewPCG(seed, 1))
		n := newPhaseNodes(t, []string{"n1", "n2", "n3", "n4"}[:1+r.IntN(4)]...)
		loss := []float64{0, 0.1, 0.5}[r.IntN(3)]
		n.lost = func(string, string) bool { return r.Float64() < loss }
		n.late = func() bool { return r.IntN(4) == 0 }
		quick := r.IntN(2) == 0
		act := func(name string) {
			n.start(name).open = r.IntN(3) > 0
		}
		for _, name := range n.first {
			act(name)
		}
		for range r.IntN(12) {
			n.runFor(time.Duration(r.IntN(30)) * 10 * time.Millisecond)
			switch name := n.nodes[r.IntN(len(n.nodes))]; r.IntN(5) {
			case 0:
				n.pools[name].open = false
			case 1:
				act([]string{"n0", "n5"}[r.IntN(2)])
			case 2:
				n.kill(name)
			default:
				for n.kill(name); quick && r.IntN(3) == 0; {
					n.kill(n.nodes[r.IntN(len(n.nodes))])
				}
				act(name)
			}
			for _, name := range n.nodes {
				n.pools[name].open = n.pools[name].open && r.IntN(4) > 0
			}
		}
		for _, name := range n.nodes {
			if n.cores[name] == nil {
				n.start(name)
			}
			n.pools[name].open = false
		}
		loss = min(loss, 0.1)
		n.runFor(time.Minute)
		for name, p := range n.pools {
			if !p.finished() {
				t.Errorf("the groups of %s end in the phases %d, and the table has %+v\n%s", name, p.groups, n.tables.Open().Replica().End(), speed.Repeat(t, seed))
			}
		}
	}
}

// TestNodeJoinsDuringARound lets a node join while the coordinator asks the others a second
// time. The group must not go on before the new node is quiet.
func TestNodeJoinsDuringARound(t *testing.T) {
	n := newPhaseNodes(t, "n1", "n2")
	for _, name := range n.first {
		n.start(name)
	}
	for n.cores["n1"].groups.groups[0].asked == nil {
		n.now += 10 * time.Millisecond
		n.step("n1")
		n.step("n2")
	}
	n.start("n3").open = true
	n.run()
	for _, p := range n.pools {
		if p.groups[0] != piper.GroupClosing {
			t.Fatal("the group goes on although n3 has not said that it is quiet")
		}
	}
	n.pools["n3"].open = false
	n.run()
	for name, p := range n.pools {
		if !p.finished() {
			t.Errorf("%s: the groups end in the phases %d although all nodes are quiet", name, p.groups)
		}
	}
}
