package member

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestRandomFaults: whatever happens to some nodes, after the faults all running nodes
// agree about all, and none is fenced if a majority runs.
func TestRandomFaults(t *testing.T) {
	speed.Checks(t, 50, 100, 10_000)
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 8).Draw(rt, "size")
		w := cluster(rt, rapid.Uint64Range(0, 1000).Draw(rt, "seed"), size, Config{Profile: ProfileLocal, TieBreaker: "n1"})
		pick := func(label string) *simNode { return w.nodes[rapid.IntRange(0, size-1).Draw(rt, label)] }
		for range rapid.IntRange(0, 20).Draw(rt, "faults") {
			w.randomFault(rt, pick)
			w.run(time.Duration(rapid.IntRange(0, 3000).Draw(rt, "run")) * time.Millisecond)
			for _, n := range w.nodes {
				if n.core != nil {
					checkCore(rt, n.core)
				}
			}
		}
		w.net.Heal()
		w.loss(0)
		if first := w.nodes[0]; first.core == nil || first.core.leaving {
			first.boot() // a new process can only join if a first member runs
		}
		var running, down []*simNode
		for _, n := range w.nodes {
			if n.core != nil && !n.core.leaving {
				running = append(running, n)
			} else {
				n.kill()
				down = append(down, n)
			}
		}
		w.run(16 * time.Second) // the longest pause: after it, no message of a dead process is on its way
		w.until("the running nodes are alive for all", 2*time.Minute, func() bool { return w.agree(Alive, running...) })
		w.until("the others are not", 2*time.Minute, func() bool {
			return !slices.ContainsFunc(down, func(d *simNode) bool {
				return slices.ContainsFunc(running, func(n *simNode) bool { return n.stateOf(d.name) < Dead })
			})
		})
		w.run(time.Second)
		for _, n := range running {
			known := 1 // a process that was started again does not know all members that stopped before
			for _, p := range n.core.ring {
				if p.state != Left {
					known++
				}
			}
			want := 2*len(running) < known // the tie breaker n1 runs
			if n.core.Fenced() != want {
				rt.Fatalf("%s: fenced %v, but %d of %d nodes run\n%s", n.name, n.core.Fenced(), len(running), known, w.summary())
			}
		}
	})
}

func (w *world) randomFault(rt *rapid.T, pick func(string) *simNode) {
	n := pick("node")
	switch rapid.SampledFrom([]string{"kill", "boot", "boot", "pause", "cut", "isolate", "heal", "loss", "leave", "old clock"}).Draw(rt, "fault") {
	case "kill":
		n.kill()
	case "boot":
		if n.core == nil || n.core.leaving {
			n.boot()
		}
	case "old clock":
		if n.core == nil {
			n.bootAs(uint64(rapid.IntRange(1, 1000).Draw(rt, "boot")))
		}
	case "pause":
		if n.core != nil {
			n.pause(time.Duration(rapid.IntRange(0, 15_000).Draw(rt, "pause")) * time.Millisecond)
		}
	case "cut":
		w.net.Cut(n.number, pick("other").number, true)
	case "isolate":
		w.net.Isolate(n.number)
	case "heal":
		w.net.Heal()
	case "loss":
		w.loss(float64(rapid.IntRange(0, 3).Draw(rt, "loss")) / 10)
	case "leave":
		if n.core != nil && w.now >= n.resumes {
			n.core.Leave(n.age())
			n.effects()
		}
	}
}

// TestClaimsInAnyOrder: two nodes that receive the same claims in different orders agree.
func TestClaimsInAnyOrder(t *testing.T) {
	speed.Checks(t, 100, 100, 10_000)
	rapid.Check(t, func(rt *rapid.T) {
		var claims []*record
		for range rapid.IntRange(1, 20).Draw(rt, "claims") {
			r := &record{
				name:        fmt.Sprintf("x%d", rapid.IntRange(1, 3).Draw(rt, "name")),
				boot:        rapid.Uint64Range(1, 3).Draw(rt, "boot"),
				incarnation: rapid.Uint64Range(0, 3).Draw(rt, "incarnation"),
				status:      status(rapid.IntRange(0, statuses-1).Draw(rt, "status")),
			}
			if r.status == statusSuspect {
				r.accusers = []uint32{rapid.Uint32Range(1, 3).Draw(rt, "accuser")}
			}
			claims = append(claims, r)
		}
		other := rapid.Permutation(claims).Draw(rt, "other order")
		var states []string
		for _, list := range [][]*record{claims, other} {
			w := newWorld(rt, 1)
			n := w.add("n1", Config{})
			n.boot()
			for _, r := range list {
				copied := *r
				n.core.learn(&copied)
			}
			checkCore(rt, n.core)
			text := fmt.Sprint(n.core.digest)
			for _, m := range n.core.Members() {
				if p := n.core.peers[m.Name]; p != nil {
					text += fmt.Sprintf(" %s %d/%d %v %v", p.name, p.boot, p.incarnation, p.status, p.accusers)
				}
			}
			states = append(states, text)
		}
		if states[0] != states[1] {
			rt.Fatalf("one order: %s\nother order: %s", states[0], states[1])
		}
	})
}
