package localtests_test

import (
	"context"
	"github.com/topogen/topogen/generated_test/nameclash"
	"testing"
)

func TestNameClashRun(t *testing.T) {
	top, err := nameclash.New(nameclash.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer top.S().Close()
		if r, err := top.S().AskSmall(context.Background(), struct{ N int }{7}); err != nil || r.N != 7 {
			t.Error(r, err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := top.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := top.X(0).N; n != 7 {
		t.Errorf("x: %d", n)
	}
	if n := top.Link(0).N + top.MakePool(0).N + top.Err(0).N; n != 5 {
		t.Errorf("link, make-pool and err: %d", n)
	}
	if in := top.StringEr(2).In; in.Index != 2 || in.Number != 3 {
		t.Errorf("%+v", in)
	}
}

func TestNameClashRecorder(t *testing.T) {
	r := nameclash.RecordOut()
	new(nameclash.OutP).ReceiveLink(nameclash.Link{}, r.Sender())
	if len(r.Sender2) != 1 {
		t.Errorf("%+v", r)
	}
}
