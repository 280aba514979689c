package localtests_test

import (
	"testing"

	"github.com/topogen/topogen/generated_test/foreign"
	"github.com/topogen/topogen/generated_test/foreign/topo"
)

func TestForeignAsk(t *testing.T) {
	top, err := foreign.New(foreign.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	top.Stepper(1)
	if q, err := top.Api().AskPoint(t.Context(), topo.Point{X: 1, Y: 2}); err != nil || q.Cents != 200 {
		t.Error(q, err)
	}
}

func TestForeignRun(t *testing.T) {
	top, err := foreign.New(foreign.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	f := top.Feed(0)
	// The handler panics at a nil page. Its key is the key of a page without a name.
	f.Done = true
	r := foreign.RecordFeed()
	if err := new(foreign.Feed).Ping(r.Sender()); err != nil || len(r.Lines) != 2 || len(r.OrderToHidden) != 1 {
		t.Error(err, r.Lines)
	}
	f.Done = false
	top.Api().Close()
	err = top.Run(t.Context())
	if err == nil {
		t.Fatal("the nil page was handled")
	}
}
