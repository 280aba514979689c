package member

import (
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/effects"
)

// TestSettingsReachTheDetector observes the effect of each setting. The other settings have the
// values of the document's profile, in which no time depends on the health of a node.
func TestSettingsReachTheDetector(t *testing.T) {
	effects.Check(t, effects.Table{
		"Config.Profile": effects.By("TestBoundOfDetection"),
		"Config.Interval": func(t *testing.T) {
			if got := detectionOf(t, Config{Interval: 200 * time.Millisecond}).pings; got < 99 || got > 101 {
				t.Errorf("%d pings in 20 s, want 100", got)
			}
		},
		"Config.DirectTimeout": func(t *testing.T) {
			if got := detectionOf(t, Config{DirectTimeout: 30 * time.Second}).failed; got < 30*time.Second || got > 40*time.Second {
				t.Errorf("the first probe failed %v after the node, want 30 s and up to 4 intervals", got)
			}
		},
		"Config.IndirectTimeout": func(t *testing.T) {
			if got := detectionOf(t, Config{IndirectTimeout: 10 * time.Second}).suspected; got < 6*time.Second || got > 10*time.Second {
				t.Errorf("the suspicion began %v after the direct probe had failed, want 6 s, when the helpers answer, to 10 s", got)
			}
		},
		"Config.Helpers": func(t *testing.T) {
			if got := detectionOf(t, Config{Helpers: 2}).helpers; got != 2 {
				t.Errorf("%d helpers, want 2", got)
			}
		},
		"Config.Suspicion": func(t *testing.T) {
			if got := detectionOf(t, Config{Suspicion: 17 * time.Second}).dead; got != 17*time.Second {
				t.Errorf("the suspicion lasted %v, want 17 s", got)
			}
		},
		"Config.Fence":      effects.By("TestHalf"),
		"Config.TieBreaker": effects.By("TestHalf"),
		"Config.ForgetDead": effects.By("TestForgottenTogether"),
		"Config.ForgetLeft": func(t *testing.T) {
			w := cluster(t, 1, 4, Config{ForgetLeft: time.Minute})
			w.nodes[3].core.Leave(w.nodes[3].age())
			w.nodes[3].effects()
			w.until("all know that n4 has left", 10*time.Second, func() bool { return w.nodes[0].core.peers["n4"].state == Left })
			w.until("n4 is forgotten", 70*time.Second, func() bool { return w.nodes[0].core.peers["n4"] == nil })
		},
	}, Config{})
}

// detection is how a cluster of five nodes detects that n5 has stopped.
type detection struct {
	pings   int // that n1 sent in 20 s, while all nodes ran
	helpers int // that the first node asked whose direct probe failed

	failed    time.Duration // from the end of n5 to the first failed direct probe
	suspected time.Duration // from there to the suspicion
	dead      time.Duration // from there to the death
}

func detectionOf(t *testing.T, c Config) (d detection) {
	t.Helper()
	c.Profile = ProfileDocument
	w := cluster(t, 1, 5, c)
	first, asked := "", map[string]bool{}
	w.print = func(format string, args ...any) {
		if !strings.Contains(format, "->") {
			return
		}
		from, to, message := args[1].(string), args[2].(string), args[3].(string)
		switch {
		case first == "" && from == "n1" && strings.HasPrefix(message, "ping "):
			d.pings++
		case from == first && strings.HasPrefix(message, kindNames[kindPingRequest]):
			asked[to] = true
		}
	}
	w.run(20 * time.Second)
	first = "-" // none yet
	w.nodes[4].kill()
	since := w.now
	w.onEvent = func(n *simNode, e Event) {
		if e.Member.Name != "n5" || e.Kind != EventProbeFailed && n.name != first {
			return
		}
		took := w.now - since
		switch {
		case e.Kind == EventProbeFailed && first == "-":
			first, d.failed = n.name, took
		case e.Kind == EventSuspected:
			d.suspected = took
		case e.Kind == EventDead:
			d.dead = took
		default:
			return
		}
		since = w.now
	}
	w.until("n5 is dead", 2*time.Minute, func() bool { return w.agree(Dead, w.nodes[4]) })
	d.helpers = len(asked)
	return d
}
