package session_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/transport"
)

// TestRandomFaults runs two nodes on a network that loses, repeats, delays and reorders
// frames, with cuts and restarts.
func TestRandomFaults(t *testing.T) {
	speed.NoRace(t)
	counts := map[string]int{}
	first, end := speed.Seeds(t, 25, 150, 10_000)
	for seed := first; seed < end; seed++ {
		w := simulate(seed)
		if w.failure != nil {
			t.Fatalf("seed %d: %v\n%s", seed, w.failure, speed.Repeat(t, seed))
		}
		for what, n := range w.counts {
			counts[what] += n
		}
	}
	t.Logf("%d seeds from %d on: %v", end-first, first, counts)
}

func simulate(seed uint64) *world {
	w := newWorld(seed)
	restarts := w.rng.IntN(2) == 0
	cuts := w.rng.IntN(2) == 0
	large := w.rng.IntN(8) == 0
	lanes := uint64(1 + w.rng.IntN(60))
	for range 40 {
		w.run(w.now + time.Duration(w.rng.Int64N(int64(300*time.Millisecond))))
		if w.failure != nil {
			return w
		}
		switch w.rng.IntN(10) {
		case 0:
			w.faults()
		case 1:
			if node := w.rng.IntN(2); restarts && w.nodes[node] != nil {
				after := time.Duration(w.rng.IntN(2)) * time.Duration(w.rng.Int64N(int64(3*time.Second)))
				w.stop(node, w.now+after) // often at once, so that frames of the former process come late
			}
		case 2:
			if from := w.rng.IntN(2); cuts {
				w.net.Cut(from, 1-from, w.rng.IntN(2) == 0)
				w.counts["cuts"]++
			}
		case 3:
			w.net.Heal()
		case 4:
			if p := w.nodes[w.rng.IntN(2)]; p != nil && cuts {
				p.session.Connected(w.now, w.rng.IntN(2) == 0)
				p.flush()
			}
		default:
			w.send(lanes, large)
		}
	}
	w.settle()
	for _, p := range w.nodes {
		if p == nil || w.failure != nil {
			continue
		}
		v := p.session.Stats()
		w.counts["messages"] += int(v.MessagesReceived)
		w.counts["frames"] += int(v.FramesSent)
		w.counts["resent"] += int(v.FramesResent)
		w.counts["duplicates"] += int(v.Duplicates)
		w.counts["forgotten"] += int(v.Forgotten)
		w.counts["timeouts"] += int(v.Timeouts)
		if v.UnackedBytes+v.AheadBytes+v.PartialBytes+v.QueuedMessages != 0 {
			w.fail("n%d is not idle: %+v", p.node, v)
		}
	}
	return w
}

func (w *world) faults() {
	f := transport.Faults{Ordered: w.rng.IntN(2) == 0, DelayMax: w.rng.Int64N(int64(200 * time.Millisecond))}
	if w.rng.IntN(4) == 0 {
		f.DelayMax *= 10
	}
	if w.rng.IntN(4) > 0 {
		f.Loss = 0.3 * w.rng.Float64()
		f.Duplicate = 0.3 * w.rng.Float64()
	}
	w.net.SetFaults(f)
}

// send sends some messages of random sizes in random lanes.
func (w *world) send(lanes uint64, large bool) {
	p := w.nodes[w.rng.IntN(2)]
	if p == nil {
		return
	}
	for range w.rng.IntN(40) {
		size := 1 << w.rng.IntN(15)
		switch w.rng.IntN(60) {
		case 0:
			size = w.rng.IntN(300_000)
		case 1:
			if large {
				size = w.rng.IntN(6 << 20)
			}
		}
		lane := w.rng.Uint64N(lanes)
		if w.rng.IntN(2) == 0 {
			lane = 1000 + lane*lane*lane
		}
		p.send(lane, size)
	}
	p.flush()
}

// TestTheSameSeedGivesTheSameRun compares two runs with the same seed.
func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	for seed := range uint64(3) {
		a, b := simulate(seed), simulate(seed)
		if a, b := fmt.Sprint(a.now, a.counts, a.state()), fmt.Sprint(b.now, b.counts, b.state()); a != b {
			t.Errorf("seed %d: %s\nand %s", seed, a, b)
		}
	}
}
