package localtests_test

import (
	"testing"

	"github.com/topogen/topogen/generated_test/replies"
	"github.com/topogen/topogen/runtime/pool"
)

func checkReplies(t *testing.T, top *replies.Topology) {
	t.Helper()
	for i := range 3 {
		if c := top.Client(i); c.Answers != replies.Questions/2 || c.Checks != replies.Questions/2 {
			t.Errorf("client: %+v", *c)
		}
	}
	if s := *top.Single(0); s != (replies.Single{Asked: true, Answers: 1, Notes: 1}) {
		t.Errorf("single: %+v", s)
	}
	if n := top.Desk(0).Solved + top.Desk(1).Solved; n != 3*replies.Questions/2+1 {
		t.Errorf("%d solved", n)
	}
	e := top.Tree().Edge(replies.EdgeDeskClientAnswerForAsk)
	if e.Received() != 3*replies.Questions/2 || e.From() != replies.ProcessorDesk || e.To() != replies.ProcessorClient || e.Message() != "Answer" {
		t.Errorf("%d answers from %v to %v", e.Received(), e.From(), e.To())
	}
}

func TestRepliesRun(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		top, err := replies.New(replies.Processors{}, pool.Workers(workers))
		if err != nil {
			t.Fatal(err)
		}
		if err := top.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkReplies(t, top)
	}
}

func TestRepliesStepper(t *testing.T) {
	for seed := range uint64(20) {
		top, err := replies.New(replies.Processors{})
		if err != nil {
			t.Fatal(err)
		}
		if err := top.Stepper(seed).Run(); err != nil {
			t.Fatal(err)
		}
		checkReplies(t, top)
	}
}

func TestRepliesRecorder(t *testing.T) {
	r := replies.RecordDesk()
	d := new(replies.Desk)
	if a, err := d.ReceiveAsk(replies.Ask{ID: 7, From: -1}, r.Sender()); err != nil || a.ID != 7 {
		t.Error(a, err)
	}
	if len(r.Riddle) != 1 || r.RiddleToOracle[0].ID != 7 || len(r.NoteToSingle) != 1 {
		t.Errorf("%+v", r)
	}
}
