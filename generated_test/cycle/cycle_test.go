package cycle

import (
	"testing"

	"github.com/topogen/topogen/runtime/pool"
)

func check(t *testing.T, top *Topology) {
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
	if left != balls*(bounce+1)+2*3 || right != balls*bounce+2*3 || lost != balls+3 {
		t.Errorf("left %d, right %d, lost %d", left, right, lost)
	}
	if fromRight != right || fromItself != 2*(balls+3) {
		t.Errorf("counter: %d from right, %d from itself", fromRight, fromItself)
	}
}

func TestRun(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		top, err := New(Processors{}, pool.Workers(workers))
		if err != nil {
			t.Fatal(err)
		}
		if err := top.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(t, top)
	}
}

func TestStepper(t *testing.T) {
	for seed := range uint64(20) {
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
