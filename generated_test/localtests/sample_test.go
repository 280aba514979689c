package localtests_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/topogen/topogen/generated_test/sample"
	"github.com/topogen/topogen/runtime/pool"
)

func TestSampleRun(t *testing.T) {
	for _, w := range []int{1, 2, 4} {
		top, err := sample.New(sample.Processors{}, pool.Workers(w))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for i := range 50 {
				a, err := top.Api().AskQueryToParser(context.Background(), sample.Query{ID: i})
				if err != nil || a.Text != fmt.Sprint("answer ", i) {
					t.Error(a, err)
				}
			}
			top.Api().Close()
		}()
		if err := top.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, e := range top.Snapshot().Edges {
			if e.Sent != e.Received+e.Dropped+uint64(e.Len) || e.Len != 0 {
				t.Errorf("unbalanced: %+v", e)
			}
		}
	}
}

func TestSampleStepper(t *testing.T) {
	for seed := range uint64(20) {
		top, _ := sample.New(sample.Processors{})
		s := top.Stepper(seed)
		a, err := top.Api().AskQueryToParser(context.Background(), sample.Query{ID: 7})
		if err != nil || a.Text != "answer 7" {
			t.Fatal(a, err)
		}
		top.Api().Close()
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		if top.Audit(0).Good != 500 {
			t.Fatalf("good: %d", top.Audit(0).Good)
		}
	}
}

// TestSampleASenderOfNobody checks that a sender that a test makes itself panics with advice.
func TestSampleASenderOfNobody(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "use the Sender of a recorder") {
			t.Errorf("a send panics with %q", text)
		}
	}()
	new(sample.AuditSender).SendNote(sample.Note{})
}
