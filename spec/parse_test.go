package spec

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/golden"
	"github.com/topogen/topogen/spec/finding"
)

// TestParse compares the printed findings of each input.yml with findings.txt in its folder.
func TestParse(t *testing.T) {
	inputs, err := filepath.Glob("testdata/parse/*/input.yml")
	if err != nil || len(inputs) == 0 {
		t.Fatal("no cases", err)
	}
	for _, input := range inputs {
		dir := filepath.Dir(input)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			src := read(t, input)
			topology, findings := Parse("input.yml", src)
			checkPromises(t, topology, findings)
			if strings.HasPrefix(filepath.Base(dir), "clean-") && len(findings) > 0 {
				t.Error("a clean file has findings")
			}
			var out bytes.Buffer
			if err := finding.WriteText(&out, findings, map[string][]byte{"input.yml": src}, false); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join(dir, "findings.txt"), out.Bytes())
		})
	}
}

// checkPromises checks the guarantees for every input.
func checkPromises(t *testing.T, topology *Topology, findings []finding.Finding) {
	t.Helper()
	if !finding.HasErrors(findings) && (topology == nil || topology.Partial) {
		t.Error("the topology is not complete, but there is no error")
	}
	if finding.HasErrors(findings) && topology != nil && !topology.Partial {
		t.Error("there is an error, but the topology is not marked as partial")
	}
	for _, f := range findings {
		r := f.Range
		if f.Message == "" || strings.HasSuffix(f.Message, ".") || strings.ContainsAny(f.Message+f.Suggestion, "\n\r") {
			t.Errorf("%s: the message must be a single sentence, got %q", f.Code, f.Message)
		}
		if (r != finding.Range{}) && (r.Line < 1 || r.Column < 1 || r.EndLine < r.Line || r.EndLine == r.Line && r.EndColumn < r.Column) {
			t.Errorf("%s: the range %v is invalid", f.Code, r)
		}
	}
	if topology == nil {
		return
	}
	for _, e := range topology.Edges {
		if e.To < 0 || e.To >= len(topology.Processors) || e.From < -1 || e.From >= len(topology.Processors) || (e.From == -1) != (e.Every > 0) {
			t.Errorf("the edge %s leads from %d to %d", e.title(), e.From, e.To)
		}
	}
	for i, p := range topology.Processors {
		if to := p.OnError.DeadLetterTo; to == i || to < -1 || to >= len(topology.Processors) || (to == -1) != (p.OnError.DeadLetter.Value == "") {
			t.Errorf("dead letters of %q go to %d", p.Name.Value, to)
		}
		if m := p.Machine; m != nil && (m.Kind == "" || p.Instances != 1 && m.Kind != FSM || p.External ||
			(p.Instances == 1) != (m.Route.Kind == RouteNone) && (p.Instances == 1 || m.ControllerTo >= 0) || m.Route.Kind == RouteBroadcast || m.Route.Kind == RouteRange || m.ControllerTo == i || m.ControllerTo < -1 || m.ControllerTo >= len(topology.Processors) ||
			(m.Kind == FSM) != (m.State.Value != "" && m.Update.Value != "") || m.Raft != nil && m.Log == nil) {
			t.Errorf("the machine of %q is incomplete: %+v", p.Name.Value, m)
		}
		if p.Restart.Policy == "" || p.Isolation == "" || p.OnError.Then == "" {
			t.Errorf("processor %q lacks a default: %+v", p.Name.Value, p)
		}
	}
	grouped := map[int]bool{}
	for _, g := range topology.Groups {
		for _, p := range g.Processors {
			if p < 0 || p >= len(topology.Processors) || grouped[p] {
				t.Errorf("processor %d must not be in the group %q", p, g.Name.Value)
			}
			grouped[p] = true
		}
		if len(g.Processors) == 0 && !topology.Partial || g.Strategy == "" || g.Intensity < 1 || g.Period <= 0 {
			t.Errorf("the group %q is incomplete: %+v", g.Name.Value, g)
		}
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
