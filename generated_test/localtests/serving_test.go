package localtests_test

import (
	"context"
	"errors"
	"testing"

	"github.com/topogen/topogen/generated_test/serving"
	"github.com/topogen/topogen/runtime/pool"
)

func checkServing(t *testing.T, top *serving.Topology) {
	t.Helper()
	if n := top.Store(0).Count + top.Store(1).Count; n != 3*serving.Items {
		t.Errorf("store: %d items", n)
	}
	if s := *top.Sink(0); s != (serving.Sink{Items: 5*serving.Items + 1, Notes: 1}) {
		t.Errorf("sink: %+v", s)
	}
	if n := top.Quiet(0).Pings; n != 1 {
		t.Errorf("%d pings", n)
	}
}

func TestServingRun(t *testing.T) {
	for _, workers := range []int{1, 2, 3} {
		top, err := serving.New(serving.Processors{}, pool.Workers(workers))
		if err != nil {
			t.Fatal(err)
		}
		if err := top.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkServing(t, top)
	}
}

func TestServingStepper(t *testing.T) {
	for seed := range uint64(20) {
		top, err := serving.New(serving.Processors{})
		if err != nil {
			t.Fatal(err)
		}
		if err := top.Stepper(seed).Run(); err != nil {
			t.Fatal(err)
		}
		checkServing(t, top)
	}
}

func TestServingRunsOnce(t *testing.T) {
	top, err := serving.New(serving.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // accepted messages are still handled
	if err := top.Run(ctx); err != nil {
		t.Error(err)
	}
	if err := top.Run(t.Context()); !errors.Is(err, pool.ErrStarted) {
		t.Error(err)
	}
}
