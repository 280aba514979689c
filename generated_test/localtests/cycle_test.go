package localtests_test

import (
	"testing"

	"github.com/topogen/topogen/generated_test/cycle"
	"github.com/topogen/topogen/runtime/pool"
)

func checkCycle(t *testing.T, top *cycle.Topology) {
	t.Helper()
	left, right, lost, fromRight, fromItself := 0, 0, 0, 0, 0
	for i := range 3 {
		left += top.Left(i).Hits
	}
	for i := range 2 {
		right += top.Right(i).Hits
		lost += top.Right(i).Lost
		if n := top.Right(i).Changed; n > 0 {
			t.Errorf("%d balls changed while a handler had them", n)
		}
		fromRight += top.Counter(i).FromRight
		fromItself += top.Counter(i).FromItself
	}
	// Each ball bounces; then each left throws a ball, and right returns it once.
	if left != cycle.Balls*(cycle.Bounce+1)+2*3 || right != cycle.Balls*cycle.Bounce+2*3 || lost != cycle.Balls+3 {
		t.Errorf("left %d, right %d, lost %d", left, right, lost)
	}
	if fromRight != right || fromItself != 2*(cycle.Balls+3) {
		t.Errorf("counter: %d from right, %d from itself", fromRight, fromItself)
	}
}

func TestCycleRun(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		top, err := cycle.New(cycle.Processors{}, pool.Workers(workers))
		if err != nil {
			t.Fatal(err)
		}
		if err := top.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkCycle(t, top)
	}
}

func TestCycleStepper(t *testing.T) {
	for seed := range uint64(20) {
		top, err := cycle.New(cycle.Processors{})
		if err != nil {
			t.Fatal(err)
		}
		if err := top.Stepper(seed).Run(); err != nil {
			t.Fatal(err)
		}
		checkCycle(t, top)
	}
}
