package replies

import (
	"testing"

	"github.com/topogen/topogen/runtime/pool"
)

func check(t *testing.T, top *Topology) {
	t.Helper()
	for i := range 3 {
		if c := top.Client(i); c.Answers != questions/2 || c.Checks != questions/2 {
			t.Errorf("client: %+v", *c)
		}
	}
	if s := *top.Single(0); s != (Single{asked: true, Answers: 1, Notes: 1}) {
		t.Errorf("single: %+v", s)
	}
	if n := top.Desk(0).Solved + top.Desk(1).Solved; n != 3*questions/2+1 {
		t.Errorf("%d solved", n)
	}
	e := top.Tree().Edge(EdgeDeskClientAnswerForAsk)
	if e.Received() != 3*questions/2 || e.From() != ProcessorDesk || e.To() != ProcessorClient || e.Message() != "Answer" {
		t.Errorf("%d answers from %v to %v", e.Received(), e.From(), e.To())
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

func TestRecorder(t *testing.T) {
	r := RecordDesk()
	d := new(Desk)
	if a, err := d.ReceiveAsk(Ask{ID: 7, From: -1}, r.Sender()); err != nil || a.ID != 7 {
		t.Error(a, err)
	}
	if len(r.Riddle) != 1 || r.RiddleToOracle[0].ID != 7 || len(r.NoteToSingle) != 1 {
		t.Errorf("%+v", r)
	}
}
