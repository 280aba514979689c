package bind

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topogen/topogen/gen/lifetime"
)

// TestHandlersBorrow: a handler of which nothing ends with its call is not looked at, even
// where its type is an alias, of which the syntax does not tell that it keeps nothing.
func TestHandlersBorrow(t *testing.T) {
	r := small(t, filepath.Join(newModule(t), "small"), "", Options{})
	want := map[string][]lifetime.Handler{
		"example.com/small": {{Type: "Feed", Name: "Ping", Params: []lifetime.Kind{lifetime.Sender}}},
	}
	if diff := cmp.Diff(want, r.handlers()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
