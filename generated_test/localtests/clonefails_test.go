package localtests_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/topogen/topogen/generated_test/clonefails"
	"github.com/topogen/topogen/runtime/topo"
)

func runCloneFails(t *testing.T) (top *clonefails.Topology, texts *atomic.Int64, others chan struct{}, end func() error) {
	t.Helper()
	texts, others = new(atomic.Int64), make(chan struct{})
	top, err := clonefails.New(clonefails.Processors{
		Many: func(topo.Instance) (*clonefails.Many, error) { return &clonefails.Many{Texts: texts}, nil },
		One:  func(topo.Instance) (*clonefails.One, error) { return &clonefails.One{Others: others}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- top.Run(context.Background()) }()
	return top, texts, others, func() error {
		top.Api().Close()
		return <-ended
	}
}

// TestCloneFailsOutside: after a Clone that panics in a send from outside, no receiver has the
// message, and later sends do not wait.
func TestCloneFailsOutside(t *testing.T) {
	top, texts, _, end := runCloneFails(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Clone did not panic")
			}
		}()
		_ = top.Api().SendText(t.Context(), clonefails.Text{})
	}()
	text := "x"
	if err := top.Api().SendText(t.Context(), clonefails.Text{Text: &text}); err != nil {
		t.Error(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if n := texts.Load(); n != 3 {
		t.Errorf("received %d messages, want 3", n)
	}
}

// TestCloneFailsBeforeALongCall: a call that fails in Clone does not keep the messages of a later
// call invisible until it ends.
func TestCloneFailsBeforeALongCall(t *testing.T) {
	top, _, others, end := runCloneFails(t)
	text, wait := "x", make(chan struct{})
	for _, b := range []clonefails.Begin{{}, {Text: clonefails.Text{Text: &text}}, {Wait: wait}} {
		if err := top.Api().SendBegin(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	<-others // the handler that sends it waits for the next line
	close(wait)
	if err := end(); err != nil && !errors.Is(err, topo.ErrStopping) {
		t.Error(err)
	}
}
