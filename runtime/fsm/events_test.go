package fsm_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/topogen/topogen/runtime/fsm"
)

// mark is an update that Update changes while the proposer still holds it.
type mark struct{ of []int64 }

func (m *mark) Clone() mark { return mark{slices.Clone(m.of)} }

func (m *mark) Update(s *tape) (int, error) {
	if len(m.of) == 0 {
		return 0, errRejected
	}
	m.of[0]++
	return len(m.of), nil
}

// marked is an Answers that ignores the answers.
type marked struct{}

func (marked) Outcome(fsm.Outcome[mark, int]) {}
func (marked) Upcoming(fsm.Upcoming[mark])    {}

// TestEachAppliedUpdateIsSentOnce: each applied update causes one event, in the order of the proposals, a
// limited number per turn, and the rest at the end. The first event is that the state
// machine leads.
func TestEachAppliedUpdateIsSentOnce(t *testing.T) {
	p, h := fsm.NewProcessor(fsm.Definition[tape, mark, int]{Update: (*mark).Update}), newHost()
	var sentEvents []fsm.AppliedUpdate[mark, int]
	var leaders []fsm.Leadership
	full := errors.New("full")
	var room error
	p.OnApplied(3, func(m fsm.AppliedUpdate[mark, int]) error {
		if room == nil {
			sentEvents = append(sentEvents, m)
		}
		return room
	})
	p.OnLeadership(3, func(l fsm.Leadership) { leaders = append(leaders, l) })
	if err := p.Start(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	turn := func() {
		t.Helper()
		if len(h.woken) == 0 {
			t.Fatal("no turn was requested")
		}
		<-h.woken
		if err := p.Answer(marked{}); err != nil {
			t.Fatal(err)
		}
	}
	turn()
	if want := []fsm.Leadership{{Instance: 3, Term: 1, Leader: "alone", ID: 1, Here: true}}; !slices.Equal(leaders, want) {
		t.Errorf("leadership events: %+v", leaders)
	}
	propose := func(of ...int64) {
		t.Helper()
		if _, err := p.Propose(t.Context(), mark{of}); errors.Is(err, errRejected) != (len(of) == 0) {
			t.Fatal(err)
		}
	}
	propose(7, 8)
	propose()
	propose(9)
	turn()
	want := []fsm.AppliedUpdate[mark, int]{
		{Entry: fsm.Entry{Index: 1}, Instance: 3, Update: mark{[]int64{7, 8}}, Value: 2},
		{Entry: fsm.Entry{Index: 2}, Instance: 3, Update: mark{[]int64{9}}, Value: 1},
	}
	if diff := cmp.Diff(want, sentEvents, cmp.AllowUnexported(mark{})); diff != "" {
		t.Error(diff)
	}
	room = full
	propose(1)
	turn()
	room = nil
	for range 1000 {
		propose(2)
	}
	turn()
	if len(sentEvents) != 2+256 || sentEvents[2].Index != 4 || sentEvents[2].Since != 3 {
		t.Errorf("%d events; the first one after a full queue is %+v", len(sentEvents), sentEvents[2])
	}
	if len(h.woken) == 0 {
		t.Error("the remaining events were forgotten")
	}
	if err := p.Finish(); err != nil || len(sentEvents) != 2+1000 || len(leaders) != 1 {
		t.Errorf("%d events, error %v", len(sentEvents), err)
	}
}
