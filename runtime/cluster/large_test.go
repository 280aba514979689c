package cluster

import (
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/transport"
)

// TestSmallMessagesBesideLargeOnes sends messages of 20 MiB and small ones to another node,
// each from an instance to an instance of their own. A large message takes several round
// trips. A small message takes one at most, also next to a large one.
func TestSmallMessagesBesideLargeOnes(t *testing.T) {
	speed.NoRace(t)
	const (
		size  = 20 << 20
		delay = 50 * time.Millisecond
	)
	former := loads
	loads = makeLoads(size)
	t.Cleanup(func() { loads = former })
	d := &design{nodes: 2, messages: speed.Pick(t, 4, 30, 30), batch: 4, parts: []designPart{
		{name: "large", instances: 1, source: true, placement: OnNode, node: "n1", with: 0, load: size},
		{name: "small", instances: 1, source: true, placement: OnNode, node: "n1", with: 1, load: 16},
		{name: "largeSink", instances: 1, placement: OnNode, node: "n2", with: 2},
		{name: "smallSink", instances: 1, placement: OnNode, node: "n2", with: 3},
	}, edges: []designEdge{{from: 0, to: 2, capacity: 1}, {from: 1, to: 3, capacity: 1}}}
	d.groups = d.components()
	s := simulate(1, d)
	s.net.SetFaults(transport.Faults{DelayMin: int64(delay), DelayMax: int64(delay), Ordered: true})
	sent := map[[2]uint64]time.Duration{}
	var fastestLarge, slowestSmall time.Duration = time.Hour, 0
	s.onSent = func(edge int, m *parcel) { sent[[2]uint64{uint64(edge), m.seq}] = s.now }
	s.onReceived = func(edge int, m *parcel) {
		took := s.now - sent[[2]uint64{uint64(edge), m.seq}]
		if m.seq == 1 {
			return // its session had to begin
		}
		if edge == 0 {
			fastestLarge = min(fastestLarge, took)
			return
		}
		slowestSmall = max(slowestSmall, took)
	}
	s.run()
	if f := s.failure(); f != "" {
		t.Fatal(f)
	}
	t.Logf("a large message takes %v or more, a small one %v or less", fastestLarge, slowestSmall)
	if fastestLarge < 6*delay {
		t.Errorf("a large message takes only %v", fastestLarge)
	}
	if slowestSmall > 3*delay {
		t.Errorf("a small message takes %v, want a round trip and the way at most", slowestSmall)
	}
}
