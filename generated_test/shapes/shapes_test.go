package shapes

import (
	"context"
	"testing"

	"github.com/topogen/topogen/runtime/pool"
)

const sum = 55 // 1 + … + 10

func TestRun(t *testing.T) {
	for _, workers := range []int{1, 2} {
		top, err := New(Processors{}, pool.Workers(workers))
		if err != nil {
			t.Fatal(err)
		}
		go ask(t, top)
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
		s := top.Stepper(seed)
		ask(t, top)
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		check(t, top)
	}
}

func ask(t *testing.T, top *Topology) {
	defer top.Door().Close()
	ctx := context.Background()
	d := top.Door()
	expect := func(r R, err error, want int) {
		t.Helper()
		if err != nil || r.N != want {
			t.Errorf("reply %v, %v; want %d", r, err, want)
		}
	}
	r, err := d.AskQ(ctx, Q{10})
	expect(r, err, 11)
	r, err = d.AskS(ctx, S{10})
	expect(r, err, 12)
	r, err = d.AskTToHandlers(ctx, T{10})
	expect(r, err, 13)
	r, err = d.AskU(ctx, U{10})
	expect(r, err, 14)
	r, err = d.AskV(ctx, V{10})
	expect(r, err, 15)
	if err := d.SendQ(ctx, Q{1}); err != nil { // no caller waits for this reply
		t.Error(err)
	}
}

func check(t *testing.T, top *Topology) {
	t.Helper()
	h := top.Handlers(0)
	for name := range "ABCDEFGHIJKL" {
		if n := h.seen[string("ABCDEFGHIJKL"[name])]; n != sum {
			t.Errorf("%c: %d", "ABCDEFGHIJKL"[name], n)
		}
	}
	if h.bad {
		t.Error("messages came out of order")
	}
	if !h.live {
		t.Error("the handlers' context had ended")
	}
	if n := *top.Values(0).seen; n != sum {
		t.Errorf("values: %d", n)
	}
	if s := top.Sink(0); s.sum != 6*sum || s.calls != 61 {
		t.Errorf("sink: %+v", *s)
	}
}
