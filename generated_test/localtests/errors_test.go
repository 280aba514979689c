package localtests_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	errorscase "github.com/topogen/topogen/generated_test/errors"
	"github.com/topogen/topogen/runtime/errtop"
	"github.com/topogen/topogen/runtime/topo"
)

func feedErrors(j errorscase.Job) func(topo.Instance) (*errorscase.Feed, error) {
	return func(topo.Instance) (*errorscase.Feed, error) { return &errorscase.Feed{Job: j}, nil }
}

// TestErrorsAreKept checks that the errors and panics of handlers are in the file when Run
// has returned, for several runs.
func TestErrorsAreKept(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(j errorscase.Job) error {
		topology, err := errorscase.New(errorscase.Processors{Feed: feedErrors(j)})
		if err != nil {
			t.Fatal(err)
		}
		return topology.Run(t.Context())
	}
	if err := run(errorscase.Job{To: 0}); !errors.Is(err, errorscase.ErrJob) {
		t.Errorf("Run returns %v", err)
	}
	if err := run(errorscase.Job{To: 1}); !errors.Is(err, errorscase.ErrJob) {
		t.Errorf("Run returns %v", err)
	}
	if err := run(errorscase.Job{Panic: true}); err == nil {
		t.Error("Run returns nil after a panic")
	}
	entries, err := errtop.Read("errors.pb")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 || entries[0].Count != 2 || entries[1].Count != 1 {
		t.Fatalf("there are %d records: %+v", len(entries), entries)
	}
	if e := entries[0].Text; !strings.Contains(e, errorscase.ErrJob.Error()) || !strings.Contains(e, "worker") || !strings.Contains(e, "ReceiveJob") {
		t.Errorf("the error is kept as %q", e)
	}
	if e := entries[1].Text; !strings.Contains(e, "the job is broken") || !strings.Contains(e, "ReceiveJob") {
		t.Errorf("the panic is kept as %q", e)
	}
}

// TestErrorsWhereTheFileCannotBe checks that Run reports an unusable path before it starts.
func TestErrorsWhereTheFileCannotBe(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("errors.pb", 0o777); err != nil {
		t.Fatal(err)
	}
	topology, err := errorscase.New(errorscase.Processors{Feed: feedErrors(errorscase.Job{})})
	if err != nil {
		t.Fatal(err)
	}
	if err := topology.Run(t.Context()); !errors.Is(err, errtop.ErrNotRegular) {
		t.Errorf("Run returns %v", err)
	}
}
