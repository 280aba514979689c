package transport_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/transport"
)

func network(seed uint64, f transport.Faults) *transport.Network[int] {
	return transport.NewNetwork[int](rand.New(rand.NewPCG(seed, 0)), f)
}

// drain delivers all messages in transit, in order.
func drain(n *transport.Network[int]) (story []string) {
	for {
		now, ok := n.Next()
		if !ok {
			return story
		}
		for {
			from, to, m, ok := n.Deliver(now)
			if !ok {
				break
			}
			story = append(story, fmt.Sprintf("%d: %d->%d %d", now, from, to, m))
		}
	}
}

func TestNetworkKeepsOrderWithoutFaults(t *testing.T) {
	n := network(1, transport.Faults{DelayMin: 3, DelayMax: 3})
	n.Send(10, 1, 2, 100)
	n.Send(10, 1, 3, 101)
	n.Send(11, 2, 1, 102)
	if _, _, _, ok := n.Deliver(12); ok {
		t.Error("a message was delivered before its time")
	}
	want := []string{"13: 1->2 100", "13: 1->3 101", "14: 2->1 102"}
	if d := cmp.Diff(want, drain(n)); d != "" {
		t.Error(d)
	}
}

func TestNetworkSameSeedSameResult(t *testing.T) {
	run := func(seed uint64) []string {
		n := network(seed, transport.Faults{Loss: 0.2, Duplicate: 0.2, DelayMin: 1, DelayMax: 50})
		for i := range 200 {
			n.Send(int64(i), i%3, (i+1)%3, i)
		}
		return drain(n)
	}
	a, b, c := run(1), run(1), run(2)
	if d := cmp.Diff(a, b); d != "" {
		t.Error(d)
	}
	if slices.Equal(a, c) {
		t.Error("two seeds had the same effect")
	}
}

// TestNetworkFaultsOccur: faults occur as often as configured, and messages overtake
// each other.
func TestNetworkFaultsOccur(t *testing.T) {
	const count = 100_000
	n := network(7, transport.Faults{Loss: 0.1, Duplicate: 0.05, DelayMin: 5, DelayMax: 25})
	for i := range count {
		n.Send(0, 1, 2, i)
	}
	overtaken, last := 0, -1
	for {
		now, ok := n.Next()
		if !ok {
			break
		}
		if now < 5 || now > 25 {
			t.Fatalf("a message arrives at %d", now)
		}
		_, _, m, _ := n.Deliver(now)
		if m < last {
			overtaken++
		}
		last = m
	}
	s := n.Stats()
	near := func(what string, got uint64, want float64) {
		if float64(got) < 0.95*want || float64(got) > 1.05*want {
			t.Errorf("%s %d, want about %.0f", what, got, want)
		}
	}
	near("lost", s.Lost, 0.1*count)
	near("doubled", s.Duplicated, 0.9*0.05*count)
	if overtaken < 10 {
		t.Errorf("%d messages have overtaken another", overtaken)
	}
	if s.Delivered+s.Lost != s.Sent+s.Duplicated {
		t.Errorf("%+v does not add up", s)
	}
}

func TestNetworkCuts(t *testing.T) {
	n := network(1, transport.Faults{DelayMin: 10, DelayMax: 10})
	arrives := func(from, to int) bool {
		now := int64(1000)
		n.Send(now, from, to, 0)
		_, _, _, ok := n.Deliver(now + 10)
		return ok
	}
	want := func(from, to int, arrived bool) {
		t.Helper()
		if got := arrives(from, to); got != arrived {
			t.Errorf("%d->%d arrives: %v", from, to, got)
		}
	}
	n.Cut(1, 2, true)
	want(1, 2, false)
	want(2, 1, true)
	n.Cut(1, 2, false)
	want(1, 2, true)
	n.Isolate(3)
	want(3, 1, false)
	want(2, 3, false)
	want(1, 2, true)
	want(3, 3, true)
	n.Cut(2, 1, true)
	n.Heal()
	want(3, 1, true)
	want(2, 1, true)

	// A message in transit when the link is cut is lost if the link is still cut on
	// arrival.
	n.Send(0, 1, 2, 0)
	n.Cut(1, 2, true)
	if _, _, _, ok := n.Deliver(10); ok {
		t.Error("a message arrived on a cut link")
	}
	n.Cut(1, 2, false)
	n.Send(0, 1, 2, 0)
	n.Cut(1, 2, true)
	n.Cut(1, 2, false)
	if _, _, _, ok := n.Deliver(10); !ok {
		t.Error("a message was lost, although the link was restored in time")
	}
	if n.Len() != 0 {
		t.Errorf("%d messages in transit", n.Len())
	}
}

// TestNetworkDelaysOnly: each message comes out once, ordered by time and then by
// sending.
func TestNetworkDelaysOnly(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		n := network(rapid.Uint64().Draw(t, "seed"), transport.Faults{DelayMax: 20})
		count := rapid.IntRange(0, 100).Draw(t, "count")
		for i := range count {
			n.Send(0, 0, 1, i)
		}
		var at []int64
		seen := make(map[int]bool)
		last := -1
		for {
			now, ok := n.Next()
			if !ok {
				break
			}
			_, _, m, _ := n.Deliver(now)
			if len(at) > 0 && (now < at[len(at)-1] || now == at[len(at)-1] && m < last) {
				t.Fatalf("message %d at %d after message %d at %d", m, now, last, at[len(at)-1])
			}
			at, last = append(at, now), m
			seen[m] = true
		}
		if len(at) != count || len(seen) != count {
			t.Fatalf("%d delivered, %d different, of %d", len(at), len(seen), count)
		}
	})
}

func ExampleNetwork() {
	n := transport.NewNetwork[string](rand.New(rand.NewPCG(1, 0)), transport.Faults{DelayMin: 5, DelayMax: 5})
	n.Send(0, 1, 2, "vote for me")
	n.Cut(2, 1, true)
	n.Send(0, 2, 1, "yes")
	for now, ok := n.Next(); ok; now, ok = n.Next() {
		if from, to, m, ok := n.Deliver(now); ok {
			fmt.Printf("at %d, %d to %d: %s\n", now, from, to, m)
		}
	}
	// Output: at 5, 1 to 2: vote for me
}

func BenchmarkNetwork(b *testing.B) {
	n := network(1, transport.Faults{Loss: 0.05, Duplicate: 0.05, DelayMin: 1, DelayMax: 20})
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		n.Send(now, 1, 2, 0)
		n.Send(now, 2, 3, 0)
		for _, _, _, ok := n.Deliver(now); ok; _, _, _, ok = n.Deliver(now) {
		}
		now++
	}
}
