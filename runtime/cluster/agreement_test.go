package cluster

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

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
func (p *phases) Needed([]bool) []bool { return make([]bool, len(p.groups)) }
func (p *phases) Fail(error)           {}
func (p *phases) Leave()               {}

func (p *phases) IsIdle() bool {
	p.looks++
	return !p.busy
}

func (p *phases) finished() bool {
	return !slices.ContainsFunc(p.groups, func(phase uint8) bool { return phase != piper.GroupFinished })
}

// sameNodes are places with a constant list of nodes.
type sameNodes []string

func (n sameNodes) Node(int, int) (string, bool) { return "", false }
func (n sameNodes) Members() []string            { return n }
func (n sameNodes) Boot(string) (uint64, bool)   { return 0, true }

// phaseNodes are nodes that only agree on the phases of their groups.
type phaseNodes struct {
	t      *testing.T
	now    time.Duration
	boots  uint64
	nodes  sameNodes
	cores  map[string]*core
	pools  map[string]*phases
	frames map[string][]frame // that have not arrived, by node
}

func newPhaseNodes(t *testing.T, names ...string) *phaseNodes {
	return &phaseNodes{t: t, nodes: names, cores: map[string]*core{}, pools: map[string]*phases{}, frames: map[string][]frame{}}
}

// start starts a process of a node.
func (n *phaseNodes) start(name string) *phases {
	n.boots++
	config := &Config{Topology: "phases", Retry: Retry{Timeout: time.Minute, Min: 50 * time.Millisecond, Max: time.Second}}
	c := newCore(config, name, n.boots, rand.New(rand.NewPCG(1, n.boots)), slog.New(slog.DiscardHandler))
	c.emit = func(to string, f []byte) {
		n.frames[to] = append(n.frames[to], frame{from: name, data: slices.Clone(f)})
	}
	pool := &phases{groups: []uint8{piper.GroupClosing, piper.GroupClosing}}
	c.begin(pool, n.nodes)
	n.cores[name], n.pools[name] = c, pool
	n.frames[name] = nil
	return pool
}

// run lets the nodes exchange messages for some time. Each says in each step which groups
// are quiet.
func (n *phaseNodes) run() {
	for end := n.now + 10*time.Second; n.now < end; n.now += 10 * time.Millisecond {
		for _, name := range n.nodes {
			c := n.cores[name]
			if c == nil {
				continue
			}
			h := happened{frames: n.frames[name], members: true}
			n.frames[name] = nil
			for i := range c.pool.Groups() {
				h.quiet = append(h.quiet, i)
			}
			c.step(n.now, &h)
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

// TestCoordinatorLearnsLate restarts the coordinator. It learns that a group has gone on after it was
// told that the group is quiet on itself and on n3, which do not say so again. Both must be told.
func TestCoordinatorLearnsLate(t *testing.T) {
	n := newPhaseNodes(t, "n1", "n2", "n3")
	p, core := n.start("n1"), n.cores["n1"]
	core.membersChanged()
	report := func(node string, m groupMessage) {
		t.Helper()
		if err := core.groups.receive(node, m); err != nil {
			t.Fatal(err)
		}
	}
	report("n1", groupMessage{kind: controlStatus, phase: piper.GroupClosing, quiet: true})
	report("n3", groupMessage{kind: controlStatus, phase: piper.GroupFlushing, quiet: true})
	before := core.peers["n3"].session.Stats().Pending
	report("n2", groupMessage{kind: controlAgree, phase: piper.GroupFlushing})
	if p.groups[0] == piper.GroupClosing {
		t.Error("the group of n1 remains in its first phase")
	}
	if told := core.peers["n3"].session.Stats().Pending - before; told != 1 {
		t.Errorf("n3 gets %d messages, want one", told)
	}
}

// TestNodeJoinsDuringARound lets a node join while the coordinator asks the others a second
// time. The group must not go on before the new node is quiet.
func TestNodeJoinsDuringARound(t *testing.T) {
	n := newPhaseNodes(t, "n1", "n2")
	p := n.start("n1")
	core := n.cores["n1"]
	core.membersChanged()
	report := func(kind byte, node string, round uint64) {
		t.Helper()
		if err := core.groups.receive(node, groupMessage{kind: kind, phase: piper.GroupClosing, round: round, quiet: true}); err != nil {
			t.Fatal(err)
		}
	}
	report(controlStatus, "n1", 0)
	report(controlStatus, "n2", 0) // the first round ends, and the coordinator asks both
	core.places = sameNodes{"n1", "n2", "n3"}
	core.membersChanged()
	report(controlAnswer, "n2", 1)
	if p.groups[0] != piper.GroupClosing {
		t.Fatal("the group goes on although n3 has not said that it is quiet")
	}
	report(controlStatus, "n3", 0)
	report(controlAnswer, "n2", 2)
	report(controlAnswer, "n3", 2)
	if p.groups[0] != piper.GroupFlushing {
		t.Errorf("the group is in phase %d although all nodes are quiet", p.groups[0])
	}
}
