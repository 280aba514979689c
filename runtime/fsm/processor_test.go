package fsm_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/topogen/topogen/runtime/fsm"
)

type processor = fsm.Processor[tape, note, answer]

// host is a pool of one instance. The test decides when it has a turn.
type host struct {
	pending int
	woken   chan struct{} // holds an element if Answer must be called
	sent    []any
}

func newHost() *host { return &host{woken: make(chan struct{}, 1)} }

func (h *host) BeginReply()   { h.pending++ }
func (h *host) EndReply()     { h.pending-- }
func (h *host) Stepped() bool { return false }
func (h *host) Wake() {
	select {
	case h.woken <- struct{}{}:
	default:
	}
}

func (h *host) Outcome(o fsm.Outcome[note, answer]) { h.sent = append(h.sent, o) }
func (h *host) Upcoming(u fsm.Upcoming[note])       { h.sent = append(h.sent, u) }

// turns calls Answer as long as turns are requested, and returns how often.
func (h *host) turns(t *testing.T, p *processor) (n int) {
	t.Helper()
	for len(h.woken) > 0 {
		<-h.woken
		n++
		if err := p.Answer(h); err != nil {
			t.Fatal(err)
		}
	}
	if h.pending != 0 {
		t.Errorf("%d calls of BeginReply have no EndReply, and no turn is requested", h.pending)
	}
	return n
}

func started(t *testing.T) (*processor, *host) {
	t.Helper()
	p, h := fsm.NewProcessor(noteDefinition), newHost()
	if err := p.Start(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	return p, h
}

func tapeOf(t *testing.T, p *processor) (values []int64) {
	t.Helper()
	if err := p.Read(t.Context(), func(s *tape) { values = slices.Clone(s.values) }); err != nil {
		t.Fatal(err)
	}
	return values
}

// TestMessages sends each message once, and a proposal after updates that are not
// applied yet.
func TestMessages(t *testing.T) {
	p, h := started(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(p.ReceiveUpdates(ctx, &fsm.Updates[note]{Updates: []note{{value: 1}, {value: 2}}}))
	must(p.ReceiveGetUpcoming(ctx, &fsm.GetUpcoming{Proposer: 3}))
	must(p.ReceiveProposal(ctx, &fsm.Proposal[note]{Proposer: 4, Update: note{value: 5}}))
	must(p.ReceiveProposal(ctx, &fsm.Proposal[note]{Proposer: 6, Update: note{how: rejects}}))
	must(p.ReceiveUpdates(ctx, &fsm.Updates[note]{Updates: []note{{value: 7}}}))
	must(p.ReceiveCommit(ctx, &fsm.Commit{}))
	must(p.ReceiveUpdates(ctx, &fsm.Updates[note]{Updates: []note{{value: 8}}}))
	if n := h.turns(t, p); n != 1 {
		t.Errorf("%d turns, want 1", n)
	}
	must(p.ReceiveRevert(ctx, &fsm.Revert{}))
	h.turns(t, p)
	want := []any{
		fsm.Upcoming[note]{Proposer: 3, Updates: []note{{value: 1}, {value: 2}}},
		fsm.Outcome[note, answer]{Proposer: 4, Update: note{value: 5}, Value: "2", Applied: fsm.Applied{Index: 3}},
		fsm.Outcome[note, answer]{Proposer: 6, Update: note{how: rejects}, Applied: fsm.Applied{Err: errRejected}},
	}
	compareErrors := cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })
	if diff := cmp.Diff(want, h.sent, cmp.AllowUnexported(note{}), compareErrors); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int64{1, 2, 5, 7}, tapeOf(t, p)); diff != "" {
		t.Error(diff)
	}
	if s, want := p.Status(), (fsm.Status{Running: true, Cleaned: 4, Applied: 4, Committed: 4, End: 4}); s != want {
		t.Errorf("status %+v, want %+v", s, want)
	}
}

// TestManyUpdatesTakeTurns: a turn applies a limited number of updates, and the
// topology does not finish before all are applied.
func TestManyUpdatesTakeTurns(t *testing.T) {
	p, h := started(t)
	const n = 10_000
	if err := p.ReceiveUpdates(t.Context(), &fsm.Updates[note]{Updates: make([]note, n)}); err != nil {
		t.Fatal(err)
	}
	<-h.woken
	if err := p.Answer(h); err != nil {
		t.Fatal(err)
	}
	if s := p.Status(); s.Applied == 0 || s.Applied == n || h.pending != 1 {
		t.Errorf("after a turn %d of %d updates are applied, with %d calls of BeginReply without EndReply", s.Applied, n, h.pending)
	}
	h.turns(t, p)
	if s := p.Status(); s.Applied != n {
		t.Errorf("%d are applied, want %d", s.Applied, n)
	}
}

// TestUpdatesDoNotPileUp: if messages arrive faster than turns, handling a message
// applies the surplus of queued updates.
func TestUpdatesDoNotPileUp(t *testing.T) {
	p, h := started(t)
	for range 100 {
		if err := p.ReceiveUpdates(t.Context(), &fsm.Updates[note]{Updates: make([]note, 1000)}); err != nil {
			t.Fatal(err)
		}
		if s := p.Status(); s.End-s.Applied > 3000 {
			t.Fatalf("%d updates are queued", s.End-s.Applied)
		}
	}
	h.turns(t, p)
	if s := p.Status(); s.Applied != 100_000 {
		t.Errorf("%d are applied", s.Applied)
	}
}

// TestUpdateIsTriedAgain: an update that fails ends the turn with its error and remains
// the next one. The next message applies it again.
func TestUpdateIsTriedAgain(t *testing.T) {
	p, h := started(t)
	if err := p.Read(t.Context(), func(s *tape) { s.trouble = &trouble{left: 2} }); err != nil {
		t.Fatal(err)
	}
	if err := p.ReceiveUpdates(t.Context(), &fsm.Updates[note]{Updates: []note{{value: 1}}}); err != nil {
		t.Fatal(err)
	}
	<-h.woken
	if err := p.Answer(h); !errors.Is(err, errFailed) {
		t.Fatalf("answer: %v", err)
	}
	proposal := fsm.Proposal[note]{Update: note{value: 2}}
	if err := p.ReceiveProposal(t.Context(), &proposal); !errors.Is(err, errFailed) {
		t.Fatalf("a proposal after it: %v", err)
	}
	if err := p.ReceiveProposal(t.Context(), &proposal); err != nil {
		t.Fatal(err)
	}
	h.turns(t, p)
	if diff := cmp.Diff([]int64{1, 2}, tapeOf(t, p)); diff != "" {
		t.Error(diff)
	}
}

// TestOutside makes proposals and reads before, during and after the run.
func TestOutside(t *testing.T) {
	ctx := t.Context()
	p := fsm.NewProcessor(noteDefinition)
	if _, err := p.Propose(ctx, note{value: 1}); !errors.Is(err, fsm.ErrNotRunning) {
		t.Errorf("before the start: %v", err)
	}
	h := newHost()
	if err := p.Start(ctx, h); err != nil {
		t.Fatal(err)
	}
	if a, err := p.ProposeResult(ctx, note{value: 1}); err != nil || a.Index != 1 || a.Value != "0" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := p.Propose(ctx, note{how: rejectsWrapped}); !errors.Is(err, errRejected) || !fsm.OutcomeKnown(err) {
		t.Errorf("rejected: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := p.Propose(ended, note{value: 2}); !errors.Is(err, context.Canceled) || !fsm.OutcomeKnown(err) {
		t.Errorf("the context has ended: %v", err)
	}
	if err := p.Read(ended, func(*tape) { t.Error("read") }); !errors.Is(err, context.Canceled) {
		t.Errorf("the context has ended: %v", err)
	}
	if len(h.woken) > 0 || h.pending > 0 {
		t.Error("a turn was requested, but a proposal of a caller does not need one")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Propose(ctx, note{value: 3}); !errors.Is(err, fsm.ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
	if diff := cmp.Diff([]int64{1}, tapeOf(t, p)); diff != "" {
		t.Error(diff)
	}
}

// TestPanicFromOutside: a panic in a caller's proposal fails the instance, not the
// caller's goroutine, because the state may be half changed.
func TestPanicFromOutside(t *testing.T) {
	p, h := started(t)
	var panicked *fsm.PanicError
	if _, err := p.Propose(t.Context(), note{value: 1, how: panics}); !errors.As(err, &panicked) || len(panicked.Stack) == 0 {
		t.Errorf("propose: %v", err)
	}
	if _, err := p.Propose(t.Context(), note{value: 2}); !errors.Is(err, fsm.ErrStopped) {
		t.Errorf("propose after a panic: %v", err)
	}
	<-h.woken
	if err := p.Answer(h); !errors.Is(err, fsm.ErrPanicked) {
		t.Errorf("answer: %v", err)
	}
	// A topology file may let a failed instance continue.
	if _, err := p.Propose(t.Context(), note{value: 2}); err != nil {
		t.Errorf("propose after the failure: %v", err)
	}
}

// TestFromManyGoroutines makes proposals and reads while turns run. Run it with -race.
func TestFromManyGoroutines(t *testing.T) {
	p, h := started(t)
	var outside sync.WaitGroup
	const each, goroutines = 200, 8
	for g := range goroutines {
		outside.Go(func() {
			for i := range each {
				if _, err := p.Propose(t.Context(), note{value: int64(i)}); err != nil {
					t.Error(err)
				}
				if rand.IntN(8) == g {
					tapeOf(t, p)
					p.Status()
				}
			}
		})
	}
	for i := range each {
		if err := p.ReceiveProposal(t.Context(), &fsm.Proposal[note]{Proposer: i}); err != nil {
			t.Fatal(err)
		}
		h.turns(t, p)
	}
	outside.Wait()
	if n := len(tapeOf(t, p)); n != each*(goroutines+1) || len(h.sent) != each {
		t.Errorf("%d applied and %d answered", n, len(h.sent))
	}
}
