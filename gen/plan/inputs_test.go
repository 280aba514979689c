package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNamesOfInputs: the names of inputs of one message contain the sender, and no input
// has the name of a method of the tracker.
func TestNamesOfInputs(t *testing.T) {
	p, findings := build(t, []byte(`
version: 1
name: demo
processors: {left: {}, right: {}, sink: {}}
edges:
  - left -> sink: {message: Order, input_timeout: 5s}
  - right -> sink: Order
  - left -> sink: Closed
  - left -> sink: State
  - left -> sink: AnyClosed
  - left -> sink: Note
  - every 1s -> sink
  - every 2s -> sink
  - every 2s as poll -> sink
`))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	var got []string
	for _, in := range p.Processors[2].Inputs {
		got = append(got, in.Ident)
	}
	want := []string{"LeftOrder", "RightOrder", "Closed_", "State_", "AnyClosed_", "Note", "Every1sTick", "Every2sTick", "TickPoll"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
