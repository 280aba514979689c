package nameclash

import (
	"context"
	"testing"
)

func TestRun(t *testing.T) {
	top, err := New(Processors{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer top.S().Close()
		if r, err := top.S().AskSmall(context.Background(), m{7}); err != nil || r.n != 7 {
			t.Error(r, err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := top.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := top.X(0).n; n != 7 {
		t.Errorf("x: %d", n)
	}
	if n := top.Link(0).n + top.MakePool(0).n + top.Err(0).n; n != 5 {
		t.Errorf("link, make-pool and err: %d", n)
	}
	if in := top.StringEr(2).in; in.Index != 2 || in.Number != 3 {
		t.Errorf("%+v", in)
	}
}

func TestRecorder(t *testing.T) {
	r := RecordOut()
	new(OutP).ReceiveLink(Link{}, r.Sender())
	if len(r.Sender2) != 1 {
		t.Errorf("%+v", r)
	}
}
