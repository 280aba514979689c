package localtests_test

import (
	"context"
	"testing"

	"github.com/topogen/topogen/generated_test/shapes"
	"github.com/topogen/topogen/runtime/pool"
)

const shapesSum = 55 // 1 + … + 10

func TestShapesRun(t *testing.T) {
	for _, workers := range []int{1, 2} {
		top, err := shapes.New(shapes.Processors{}, pool.Workers(workers))
		if err != nil {
			t.Fatal(err)
		}
		go askShapes(t, top)
		if err := top.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkShapes(t, top)
	}
}

func TestShapesStepper(t *testing.T) {
	for seed := range uint64(20) {
		top, err := shapes.New(shapes.Processors{})
		if err != nil {
			t.Fatal(err)
		}
		s := top.Stepper(seed)
		askShapes(t, top)
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		checkShapes(t, top)
	}
}

func askShapes(t *testing.T, top *shapes.Topology) {
	defer top.Door().Close()
	ctx := context.Background()
	d := top.Door()
	expect := func(r shapes.R, err error, want int) {
		t.Helper()
		if err != nil || r.N != want {
			t.Errorf("reply %v, %v; want %d", r, err, want)
		}
	}
	r, err := d.AskQ(ctx, shapes.Q{N: 10})
	expect(r, err, 11)
	r, err = d.AskS(ctx, shapes.S{N: 10})
	expect(r, err, 12)
	r, err = d.AskTToHandlers(ctx, shapes.T{N: 10})
	expect(r, err, 13)
	r, err = d.AskU(ctx, shapes.U{N: 10})
	expect(r, err, 14)
	r, err = d.AskV(ctx, shapes.V{N: 10})
	expect(r, err, 15)
	if err := d.SendQ(ctx, shapes.Q{N: 1}); err != nil { // no caller waits for this reply
		t.Error(err)
	}
}

func checkShapes(t *testing.T, top *shapes.Topology) {
	t.Helper()
	h := top.Handlers(0)
	for name := range "ABCDEFGHIJKL" {
		if n := h.Seen[string("ABCDEFGHIJKL"[name])]; n != shapesSum {
			t.Errorf("%c: %d", "ABCDEFGHIJKL"[name], n)
		}
	}
	if h.Bad {
		t.Error("messages came out of order")
	}
	if !h.Live {
		t.Error("the handlers' context had ended")
	}
	if n := *top.Values(0).Seen; n != shapesSum {
		t.Errorf("values: %d", n)
	}
	if s := top.Sink(0); s.Sum != 6*shapesSum || s.Calls != 61 {
		t.Errorf("sink: %+v", *s)
	}
}
