package localtests_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/topogen/topogen/generated_test/external"
	"github.com/topogen/topogen/runtime/route"
	"github.com/topogen/topogen/runtime/topo"
)

func newTopologyExternal(t *testing.T) *external.Topology {
	t.Helper()
	top, err := external.New(external.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// TestExternalPolicies fills the queues of one desk: the IDs in same go to the same desk as ID 1.
func TestExternalPolicies(t *testing.T) {
	top := newTopologyExternal(t)
	ctx, api := t.Context(), top.Api()
	desk := top.Desk(route.Int(1, 2))
	steps := []struct {
		name string
		send func() error
		want error
	}{
		{"try", func() error { return api.SendTry(ctx, external.Try{ID: 1}) }, nil},
		{"try", func() error { return api.SendTryToDesk(ctx, external.Try{ID: 1}) }, nil},
		{"try", func() error { return api.SendTry(ctx, external.Try{ID: 1}) }, topo.ErrFull},
		{"try", func() error { _, err := api.AskTry(ctx, external.Try{ID: 1}); return err }, topo.ErrFull},
		{"offer", func() error { return api.SendOffer(ctx, external.Offer{ID: 1}) }, nil},
		{"offer", func() error { return api.SendOffer(ctx, external.Offer{ID: 1}) }, nil},
		{"offer", func() error { return api.SendOffer(ctx, external.Offer{ID: 1}) }, nil},
		{"offer", func() error { _, err := api.AskOffer(ctx, external.Offer{ID: 1}); return err }, topo.ErrFull},
		{"latest", func() error { return api.SendLatest(ctx, external.Latest{ID: 1}) }, nil},
		{"latest", func() error { return api.SendLatest(ctx, external.Latest{ID: 1}) }, nil},
		{"latest", func() error { return api.SendLatest(ctx, external.Latest{ID: 1}) }, nil},
		{"line", func() error { return api.SendLine(ctx, external.Line{Text: []byte("a")}) }, nil},
		{"line", func() error { return api.SendLine(ctx, external.Line{Text: []byte("b")}) }, nil},
		{"line", func() error { return api.SendLineToDesk(ctx, external.Line{Text: []byte("c")}) }, nil},
		{"line", func() error { return api.SendLineToDesk(ctx, external.Line{Text: []byte("d")}) }, nil},
		{"line", func() error { return api.SendLine(ctx, external.Line{Text: []byte("e")}) }, topo.ErrFull},
		{"line", func() error { return api.SendLineToLog(ctx, external.Line{Text: []byte("f")}) }, nil}, // dropped
	}
	for i, s := range steps {
		if err := s.send(); !errors.Is(err, s.want) {
			t.Errorf("%d: %s: %v, want %v", i, s.name, err, s.want)
		}
	}
	s := top.Stepper(1)
	api.Close()
	top.Bell().Close()
	top.Bell().Close()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	if len(desk.IDs) != 6 {
		t.Errorf("the desk got %v", desk.IDs)
	}
	for i := range 2 {
		if lines := top.Desk(i).Lines; !slices.Equal(lines, []string{"a", "b", "c", "d"}) {
			t.Errorf("desk %d: %q", i, lines)
		}
	}
	if lines := top.Log(0).Lines; !slices.Equal(lines, []string{"a", "b"}) {
		t.Errorf("log: %q", lines)
	}
	for _, e := range top.Snapshot().Edges {
		if e.Sent != e.Received+e.Dropped {
			t.Errorf("unbalanced: %+v", e)
		}
	}
	if err := api.SendTry(ctx, external.Try{ID: 1}); !errors.Is(err, topo.ErrClosed) {
		t.Error(err)
	}
}

func TestExternalBell(t *testing.T) {
	top := newTopologyExternal(t)
	s, ctx, bell := top.Stepper(3), t.Context(), top.Bell()
	for _, text := range []string{"a", "b", "c"} {
		if err := bell.SendLine(ctx, external.Line{Text: []byte(text)}); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		if err := bell.SendOffer(ctx, external.Offer{ID: 1}); err != nil {
			t.Error(err)
		}
	}
	top.Api().Close()
	bell.Close()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	if l := top.Log(0); !slices.Equal(l.Lines, []string{"b", "c"}) || l.Offers != 2 {
		t.Errorf("%+v", *l)
	}
}

// TestExternalTimeout asks a topology that does not run, so no reply comes.
func TestExternalTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top := newTopologyExternal(t)
		for range 5 { // two messages fit into the queue; the senders of the others wait
			if _, err := top.Api().AskAskToDesk(t.Context(), external.Ask{ID: 1}); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := top.Api().SendAsk(ctx, external.Ask{ID: 1}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestExternalManyGoroutines(t *testing.T) {
	top := newTopologyExternal(t)
	const callers, each = 8, 200
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for i := range each {
				a, err := top.Api().AskAskToDesk(t.Context(), external.Ask{ID: c*each + i})
				if err != nil || a.ID != c*each+i {
					t.Error(a, err)
					return
				}
				if err := top.Api().SendAskToLog(t.Context(), external.Ask{ID: i}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		group.Wait()
		top.Api().Close()
		top.Bell().Close()
	}()
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(top.Desk(0).IDs) + len(top.Desk(1).IDs); n != callers*each || top.Log(0).Asks != callers*each {
		t.Errorf("%d questions, %d notes", n, top.Log(0).Asks)
	}
}
