package policies

import (
	"slices"
	"testing"

	"github.com/topogen/topogen/runtime/pool"
)

var (
	oldest = []int{0, 1, 2, 3}
	newest = []int{6, 7, 8, 9}
	all    = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
)

func check(t *testing.T, top *Topology) {
	t.Helper()
	for _, c := range []struct {
		name      string
		got, want []int
	}{
		{"plain.Old", top.Plain(0).Old, newest},
		{"plain.Fresh", top.Plain(0).Fresh, oldest},
		{"pointers.Old", top.Pointers(0).Old, newest},
		{"pointers.Must", top.Pointers(0).Must, oldest},
		{"ordered.Old", top.Ordered(0).Old, newest},
		{"ordered.Fresh", top.Ordered(0).Fresh, oldest},
		{"ordered.Must", top.Ordered(0).Must, oldest},
		{"ordered.Wait", top.Ordered(0).Wait, all},
		{"ordered.Seen", top.Ordered(0).Seen, newest},
		{"ordered 1.Fresh", top.Ordered(1).Fresh, oldest},
		{"ordered 1.Must", top.Ordered(1).Must, oldest},
		{"ordered 1.Wait", top.Ordered(1).Wait, all},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if top.Ordered(0).Bad || top.Ordered(1).Bad {
		t.Error("messages came out of order")
	}
	if b := *top.Burst(0); b != (Burst{Failed: 6, Sent: 4}) {
		t.Errorf("burst: %+v", b)
	}
	if r := *top.Relay(0); r != (Relay{Failed: 6, Sent: 4}) {
		t.Errorf("relay: %+v", r)
	}
	for _, e := range top.Snapshot().Edges {
		if e.Sent != e.Received+e.Dropped || e.Len != 0 {
			t.Errorf("unbalanced: %+v", e)
		}
	}
}

// TestRun uses one worker, so that all messages of a burst are queued together.
func TestRun(t *testing.T) {
	top, err := New(Processors{}, pool.Workers(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, top)
}

func TestStepper(t *testing.T) {
	for seed := range uint64(30) {
		top, err := New(Processors{})
		if err != nil {
			t.Fatal(err)
		}
		if err := top.Stepper(seed).Run(); err != nil {
			t.Fatal(err)
		}
		check(t, top)
	}
}
