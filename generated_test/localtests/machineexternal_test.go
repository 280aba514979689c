package localtests_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/topogen/topogen/generated_test/machineexternal"
	"github.com/topogen/topogen/runtime/fsm"
)

// TestMachineExternalFromOutside runs a topology with only a state machine until its context ends.
func TestMachineExternalFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top, err := machineexternal.New(machineexternal.Processors{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- top.Run(ctx) }()
		synctest.Wait()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if _, err := top.Sum().Propose(ctx, 7); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if _, err := top.Sum().Propose(ctx, -1); !errors.Is(err, machineexternal.ErrNegative) || !fsm.OutcomeKnown(err) {
			t.Errorf("Propose returns %v", err)
		}
		var sum int64
		if err := top.Sum().Read(ctx, func(n *int64) { sum = *n }); err != nil || sum != 700 {
			t.Errorf("the sum is %d, %v", sum, err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returns %v", err)
		}
	})
}

// TestMachineExternalBeforeTheFirstStep checks that a proposal works before the first step of a Stepper.
func TestMachineExternalBeforeTheFirstStep(t *testing.T) {
	top, err := machineexternal.New(machineexternal.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := top.Sum().Propose(t.Context(), 7); !errors.Is(err, fsm.ErrNotRunning) {
		t.Errorf("before Run, Propose returns %v", err)
	}
	top.Stepper(1)
	if sum, err := top.Sum().Propose(t.Context(), 7); sum != 7 || err != nil {
		t.Errorf("Propose returns %d, %v", sum, err)
	}
}

// TestMachineExternalUnderAStepper ends when it is stopped.
func TestMachineExternalUnderAStepper(t *testing.T) {
	top, err := machineexternal.New(machineexternal.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	s := top.Stepper(1)
	if err := s.Run(); err != nil || !top.Sum().Status().Running {
		t.Fatal("it has ended", err)
	}
	if _, err := top.Sum().Propose(t.Context(), 7); err != nil {
		t.Error(err)
	}
	s.Stop()
	if err := s.Run(); err != nil || top.Sum().Status().Running {
		t.Error("it still runs", err)
	}
}
