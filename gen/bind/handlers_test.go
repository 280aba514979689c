package bind

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topogen/topogen/gen/lifetime"
)

// TestHandlersBorrow checks that a handler whose parameters may all be kept is not analyzed,
// even if its type is an alias, for which the syntax proves nothing.
func TestHandlersBorrow(t *testing.T) {
	r := small(t, newFolder(t), "", Options{})
	want := map[string][]lifetime.Handler{
		r.root.path: {{Type: "Feed", Name: "Ping", Params: []lifetime.Kind{lifetime.Sender}}},
	}
	if diff := cmp.Diff(want, r.handlers()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
