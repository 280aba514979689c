package member

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
)

// deaths counts the deaths that nodes report from now on, by the name of the dead.
func (w *world) deaths() map[string]int {
	count := make(map[string]int)
	w.onEvent = func(_ *simNode, e Event) {
		if e.Kind == EventDead {
			count[e.Member.Name]++
		}
	}
	return count
}

// cut cuts or restores the links from some nodes to others, in this direction.
func (w *world) cut(from, to []*simNode, cut bool) {
	for _, a := range from {
		for _, b := range to {
			if a != b {
				w.net.Cut(a.number, b.number, cut)
			}
		}
	}
}

// split cuts or restores all links between two parts.
func (w *world) split(a, b []*simNode, cut bool) {
	w.cut(a, b, cut)
	w.cut(b, a, cut)
}

// TestSteadyState: without faults nothing is reported, and a node sends one ping and one
// ack per interval.
func TestSteadyState(t *testing.T) {
	w := cluster(t, 1, 100, Config{})
	w.run(10 * time.Second)
	w.onEvent = func(n *simNode, e Event) { t.Errorf("%v: %s reports %s", w.now, n.name, describeEvent(e)) }
	before := w.sent
	w.run(5 * time.Minute)
	if got := float64(w.sent-before) / 100 / 300; got < 1.95 || got > 2.05 {
		t.Errorf("a node sends %.2f messages per second, want 2", got)
	}
}

// TestBoundOfDetection: a node that stops is dead for every node within the time that
// Config states, in every profile and for several sizes.
func TestBoundOfDetection(t *testing.T) {
	speed.NoRace(t)
	for profile, p := range Profiles {
		for _, size := range []int{3, 4, 10, 40} {
			t.Run(fmt.Sprintf("%s/%d", profile, size), func(t *testing.T) {
				bound := time.Duration(size-1)*p.Interval + p.DirectTimeout + p.IndirectTimeout + p.Suspicion + p.Interval
				if size == 3 {
					bound += time.Duration((p.Spread - 1) * float64(p.Suspicion)) // one node alone cannot confirm more
				}
				for seed := range speed.Pick(t, uint64(2), 10, 100) {
					w := cluster(t, seed, size, Config{Profile: profile})
					w.run(time.Duration(w.rng.Int64N(int64(5 * p.Interval))))
					victim := w.nodes[w.rng.IntN(size)]
					victim.kill()
					w.until("the dead node is dead for all", bound, func() bool { return w.agree(Dead, victim) })
				}
			})
		}
	}
}

// TestTimelineOfTheDocument: row C24. The states follow each other in the order and within
// the times of the document, after the first failed probe has begun.
func TestTimelineOfTheDocument(t *testing.T) {
	for seed := range uint64(20) {
		w := cluster(t, seed, 4, Config{Profile: ProfileDocument})
		first := make(map[EventKind]time.Duration)
		w.onEvent = func(n *simNode, e Event) {
			if _, seen := first[e.Kind]; !seen && e.Member.Name == "n4" {
				first[e.Kind] = w.now
			}
		}
		killed := w.now
		w.nodes[3].kill()
		w.until("n4 is dead", 30*time.Second, func() bool { return w.agree(Dead, w.nodes[3]) })
		begin := first[EventProbeFailed] - 5*time.Second
		for _, c := range []struct {
			kind        EventKind
			after, till time.Duration
		}{
			{EventProbeFailed, 5 * time.Second, 5 * time.Second},
			{EventSuspected, 5 * time.Second, 8 * time.Second},
			{EventDead, 15 * time.Second, 18 * time.Second},
		} {
			if got := first[c.kind] - begin; got < c.after || got > c.till {
				t.Errorf("seed %d: n4 is %v %v after the failed probe, want %v to %v", seed, c.kind, got, c.after, c.till)
			}
		}
		if begin > killed+3*2*time.Second {
			t.Errorf("seed %d: the first probe began %v after the failure, want at most 3 intervals", seed, begin-killed)
		}
	}
}

// TestManyDeaths: 40 of 100 nodes stop at the same time. The others agree, and are not
// fenced.
func TestManyDeaths(t *testing.T) {
	w := cluster(t, 3, 100, Config{})
	w.run(5 * time.Second)
	dead := w.nodes[60:]
	for _, n := range dead {
		n.kill()
	}
	count := w.deaths()
	took := w.until("all know the dead", 30*time.Second, func() bool { return w.agree(Dead, dead...) })
	t.Logf("all know 40 deaths after %v", took)
	w.run(time.Minute)
	for _, n := range w.nodes[:60] {
		if count[n.name] > 0 {
			t.Errorf("%d nodes declared %s dead, which runs", count[n.name], n.name)
		}
		if n.core.Fenced() {
			t.Errorf("%s is fenced, but 60 of 100 nodes run", n.name)
		}
	}
}

// TestPauses: a tenth of the nodes stops for 1 to 15 s, again and again. Nodes that are
// never paused are never declared dead, and at the end all agree.
func TestPauses(t *testing.T) {
	const size, paused = 50, 5
	w := cluster(t, 4, size, Config{})
	count := w.deaths()
	for range 60 {
		for _, n := range w.nodes[:paused] {
			if w.now >= n.resumes && w.rng.IntN(3) == 0 {
				n.pause(time.Second + time.Duration(w.rng.Int64N(int64(14*time.Second))))
			}
		}
		w.run(5 * time.Second)
	}
	w.run(15 * time.Second)
	w.until("all are alive again", time.Minute, func() bool { return w.agree(Alive, w.nodes...) })
	for _, n := range w.nodes[paused:] {
		if count[n.name] > 0 {
			t.Errorf("%d nodes declared %s dead, which was never paused", count[n.name], n.name)
		}
	}
	if len(count) == 0 {
		t.Error("no pause led to a death: the test tests nothing")
	}
}

// TestPausedNodeBlamesNone: a node that wakes after 15 s declares no other node dead, and
// does not suspect one.
func TestPausedNodeBlamesNone(t *testing.T) {
	for seed := range uint64(20) {
		w := cluster(t, seed, 10, Config{})
		w.run(3 * time.Second)
		for len(w.nodes[0].core.probes) == 0 { // the answer will wait
			w.step(time.Hour)
		}
		w.onEvent = func(n *simNode, e Event) {
			if n == w.nodes[0] && e.Kind != EventAlive && e.Kind < EventFenced {
				t.Errorf("seed %d: the node that was paused reports %s", seed, describeEvent(e))
			}
		}
		w.nodes[0].pause(15 * time.Second)
		w.run(40 * time.Second)
		if !w.agree(Alive, w.nodes...) {
			t.Errorf("seed %d: not all are alive\n%s", seed, w.summary())
		}
	}
}

// TestFlappingLink: a link between two nodes fails and returns every 300 ms to 3 s. The
// helpers reach both, so no node is suspected for long.
func TestFlappingLink(t *testing.T) {
	w := cluster(t, 5, 10, Config{})
	count := w.deaths()
	a, b := w.nodes[3:4], w.nodes[4:5]
	for i := range 200 {
		w.split(a, b, i%2 == 0)
		w.run(300*time.Millisecond + time.Duration(w.rng.Int64N(int64(2700*time.Millisecond))))
	}
	if len(count) > 0 {
		t.Errorf("deaths: %v", count)
	}
	w.until("all are alive", 5*time.Second, func() bool { return w.agree(Alive, w.nodes...) })
}

// TestOneWayCuts: a link that is cut in one direction kills no node. A node that
// receives nothing, or whose messages are all lost, is dead for the others and fenced.
func TestOneWayCuts(t *testing.T) {
	t.Run("link", func(t *testing.T) {
		w := cluster(t, 6, 10, Config{})
		count := w.deaths()
		w.cut(w.nodes[3:4], w.nodes[4:5], true)
		w.run(10 * time.Minute)
		if len(count) > 0 {
			t.Errorf("deaths: %v", count)
		}
	})
	for _, c := range []struct {
		name       string
		send, hear bool
	}{{"hears nothing", true, false}, {"is not heard", false, true}, {"alone", false, false}} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(5) {
				w := cluster(t, seed, 20, Config{})
				victim, others := w.nodes[7], slices.Concat(w.nodes[:7], w.nodes[8:])
				if !c.hear {
					w.cut(others, []*simNode{victim}, true)
				}
				if !c.send {
					w.cut([]*simNode{victim}, others, true)
				}
				w.until("dead for the others", 30*time.Second, func() bool { return w.agreeAmong(others, Dead, victim) })
				w.until("fenced", 15*time.Second, victim.core.Fenced)
				for _, n := range others {
					if n.core.Fenced() {
						t.Errorf("%s is fenced", n.name)
					}
				}
				w.net.Heal()
				w.until("back", 15*time.Second, func() bool { return w.agree(Alive, w.nodes...) && !victim.core.Fenced() })
			}
		})
	}
}

// agreeAmong is agree for a part of the nodes.
func (w *world) agreeAmong(among []*simNode, s State, about ...*simNode) bool {
	for _, n := range among {
		for _, a := range about {
			if n.core != nil && a != n && n.stateOf(a.name) != s {
				return false
			}
		}
	}
	return true
}

// TestLoss: with 10 % loss no node that runs is declared dead in ten minutes, and a node
// that stops is detected.
func TestLoss(t *testing.T) {
	w := cluster(t, 7, 50, Config{})
	w.loss(0.1)
	count := w.deaths()
	w.run(10 * time.Minute)
	if len(count) > 0 {
		t.Errorf("deaths: %v", count)
	}
	w.nodes[20].kill()
	w.until("dead", 20*time.Second, func() bool { return w.agree(Dead, w.nodes[20]) })
}

// TestPartition: the larger part continues, the smaller one is fenced soon. After the
// partition all are alive again, and no node is fenced.
func TestPartition(t *testing.T) {
	speed.NoRace(t)
	all := [][2]int{{3, 2}, {4, 1}, {20, 19}, {60, 40}, {99, 1}}
	for _, sizes := range speed.Pick(t, all[:3], all, all) {
		t.Run(fmt.Sprintf("%d and %d", sizes[0], sizes[1]), func(t *testing.T) {
			w := cluster(t, 8, sizes[0]+sizes[1], Config{})
			w.run(3 * time.Second)
			large, small := w.nodes[:sizes[0]], w.nodes[sizes[0]:]
			w.split(large, small, true)
			fenced := w.until("the small part is fenced", 20*time.Second, func() bool {
				return !slices.ContainsFunc(small, func(n *simNode) bool { return !n.core.Fenced() })
			})
			dead := fenced + w.until("the small part is dead for the large one", 40*time.Second, func() bool { return w.agreeAmong(large, Dead, small...) })
			t.Logf("fenced after %v, dead after %v", fenced, dead)
			for _, n := range large {
				if n.core.Fenced() {
					t.Errorf("%s is fenced in the larger part", n.name)
				}
			}
			w.run(time.Minute)
			w.net.Heal()
			back := w.until("all are alive", time.Minute, func() bool {
				return w.agree(Alive, w.nodes...) && !slices.ContainsFunc(w.nodes, func(n *simNode) bool { return n.core.Fenced() })
			})
			t.Logf("all are alive %v after the partition", back)
		})
	}
}

// TestHalf: half is not a majority. With a tie breaker its half continues.
func TestHalf(t *testing.T) {
	for _, c := range []struct {
		size   int
		tie    string
		fence  string
		fenced [2]bool
	}{
		{4, "", "", [2]bool{true, true}},
		{4, "n2", "", [2]bool{false, true}},
		{4, "n3", "", [2]bool{true, false}},
		{4, "", FenceOff, [2]bool{false, false}},
		{2, "n1", "", [2]bool{false, true}},
		{2, "n2", "", [2]bool{true, false}},
		{2, "", FenceOff, [2]bool{false, false}},
	} {
		t.Run(fmt.Sprintf("%d%s%s", c.size, c.tie, c.fence), func(t *testing.T) {
			w := cluster(t, 9, c.size, Config{TieBreaker: c.tie, Fence: c.fence})
			half := c.size / 2
			w.split(w.nodes[:half], w.nodes[half:], true)
			w.until("each half is dead for the other", time.Minute, func() bool {
				return w.agreeAmong(w.nodes[:half], Dead, w.nodes[half:]...) && w.agreeAmong(w.nodes[half:], Dead, w.nodes[:half]...)
			})
			for i, n := range w.nodes {
				if got, want := n.core.Fenced(), c.fenced[i/half]; got != want {
					t.Errorf("%s: fenced %v, want %v", n.name, got, want)
				}
			}
			w.net.Heal()
			w.until("back", 30*time.Second, func() bool { return w.agree(Alive, w.nodes...) })
		})
	}
}

// TestTwoNodesDetectDeath: flaw C-F5. Without helpers the other node is suspected at
// once, and then dead.
func TestTwoNodesDetectDeath(t *testing.T) {
	w := cluster(t, 10, 2, Config{Profile: ProfileDocument, TieBreaker: "n1"})
	w.nodes[1].kill()
	p := Profiles[ProfileDocument]
	w.until("n2 is dead", p.Interval+p.DirectTimeout+p.Suspicion+time.Second, func() bool { return w.nodes[0].stateOf("n2") == Dead })
	w.nodes[1].boot()
	w.until("n2 is back", time.Second, func() bool { return w.agree(Alive, w.nodes...) })
}

// TestOneNode: a node that is alone is not fenced and sends nothing.
func TestOneNode(t *testing.T) {
	w := cluster(t, 11, 1, Config{})
	w.run(10 * time.Minute)
	if n := w.nodes[0].core; n.Fenced() || !n.joined || w.sent > 0 {
		t.Errorf("fenced %v, joined %v, %d messages", n.Fenced(), n.joined, w.sent)
	}
}

// TestPingsAreRepeated: a direct probe without an answer sends its ping three times.
func TestPingsAreRepeated(t *testing.T) {
	w := cluster(t, 1, 3, Config{Profile: ProfileDocument})
	w.run(10 * time.Second)
	w.cut(w.nodes[1:2], w.nodes[:1], true)
	pings := map[string]int{}
	w.print = func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); strings.Contains(text, " n1->n2 ping ") {
			sequence, _, _ := strings.Cut(args[3].(string), ":")
			pings[sequence]++
		}
	}
	w.run(9 * time.Second) // the first probe begins within two intervals of 2 s, and takes 5 s
	most := 0
	for _, n := range pings {
		most = max(most, n)
	}
	if most != 3 {
		t.Errorf("the pings of a probe must be sent 3 times, got %v", pings)
	}
}
