package nameclashprocess

import (
	"context"
	"slices"
	"testing"
	gotime "time"
)

// TestRun sends messages along all edges and checks their contents.
func TestRun(t *testing.T) {
	top, err := New(Processors{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), gotime.Minute)
	defer cancel()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		defer top.Handler().Close()
		if k, err := top.Handler().AskEdge(ctx, edge{"a"}); err != nil || k.Kind != "a" {
			t.Errorf("%+v %v", k, err)
		}
		if _, err := top.Handler().AskKind(ctx, Kind{1}); err != nil {
			t.Error(err)
		}
	}()
	if err := top.Run(ctx); err != nil {
		t.Error(err)
	}
	<-asked
	if got := top.Info(0).got; !slices.Equal(got, []string{"right", "nested"}) {
		t.Error(got)
	}
	if got := top.Outside(0).got; got != 3 {
		t.Error(got)
	}
}
