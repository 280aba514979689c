package localtests_test

import (
	"slices"
	"testing"

	"github.com/topogen/topogen/generated_test/policies"
	"github.com/topogen/topogen/runtime/pool"
)

var (
	policiesOldest = []int{0, 1, 2, 3}
	policiesNewest = []int{6, 7, 8, 9}
	policiesAll    = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
)

func checkPolicies(t *testing.T, top *policies.Topology) {
	t.Helper()
	for _, c := range []struct {
		name      string
		got, want []int
	}{
		{"plain.Old", top.Plain(0).Old, policiesNewest},
		{"plain.Fresh", top.Plain(0).Fresh, policiesOldest},
		{"pointers.Old", top.Pointers(0).Old, policiesNewest},
		{"pointers.Must", top.Pointers(0).Must, policiesOldest},
		{"ordered.Old", top.Ordered(0).Old, policiesNewest},
		{"ordered.Fresh", top.Ordered(0).Fresh, policiesOldest},
		{"ordered.Must", top.Ordered(0).Must, policiesOldest},
		{"ordered.Wait", top.Ordered(0).Wait, policiesAll},
		{"ordered.Seen", top.Ordered(0).Seen, policiesNewest},
		{"ordered 1.Fresh", top.Ordered(1).Fresh, policiesOldest},
		{"ordered 1.Must", top.Ordered(1).Must, policiesOldest},
		{"ordered 1.Wait", top.Ordered(1).Wait, policiesAll},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if top.Ordered(0).Bad || top.Ordered(1).Bad {
		t.Error("messages came out of order")
	}
	if b := *top.Burst(0); b != (policies.Burst{Failed: 6, Sent: 4}) {
		t.Errorf("burst: %+v", b)
	}
	if r := *top.Relay(0); r != (policies.Relay{Failed: 6, Sent: 4}) {
		t.Errorf("relay: %+v", r)
	}
	for _, e := range top.Snapshot().Edges {
		if e.Sent != e.Received+e.Dropped || e.Len != 0 {
			t.Errorf("unbalanced: %+v", e)
		}
	}
}

// TestPoliciesRun uses one worker, so that all messages of a burst are queued together.
func TestPoliciesRun(t *testing.T) {
	top, err := policies.New(policies.Processors{}, pool.Workers(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkPolicies(t, top)
}

func TestPoliciesStepper(t *testing.T) {
	for seed := range uint64(30) {
		top, err := policies.New(policies.Processors{})
		if err != nil {
			t.Fatal(err)
		}
		if err := top.Stepper(seed).Run(); err != nil {
			t.Fatal(err)
		}
		checkPolicies(t, top)
	}
}
