package spec

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/topogen/topogen/spec/finding"
)

// FuzzParse checks the guarantees for any text: Parse and the printers return, the findings have
// positions in the text, and an accepted topology is valid.
func FuzzParse(f *testing.F) {
	inputs, _ := filepath.Glob("testdata/parse/*/input.yml")
	for _, input := range inputs {
		src, err := os.ReadFile(input)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		topology, findings := Parse("topology.yml", src)
		checkPromises(t, topology, findings)
		lines := len(newSource(src).Lines)
		for _, f := range findings {
			if f.Range.EndLine > lines {
				t.Errorf("%s: the range %v is beyond line %d", f.Code, f.Range, lines)
			}
		}
		if topology != nil && !topology.Partial {
			checkNames(t, topology)
			Unreachable(topology, func(int) bool { return false })
		}
		var out bytes.Buffer
		if err := finding.WriteText(&out, findings, map[string][]byte{"topology.yml": src}, false); err != nil {
			t.Error(err)
		}
		if bytes.ContainsAny(out.Bytes(), "\x00\x1b\x07\r") {
			t.Error("the output has control characters")
		}
		for _, write := range []func() error{
			func() error { return finding.WriteJSON(&out, findings, "") },
			func() error { return finding.WriteSARIF(&out, findings, "") },
		} {
			out.Reset()
			if err := write(); err != nil || !json.Valid(out.Bytes()) {
				t.Error("the output is not JSON", err)
			}
		}
	})
}

// checkNames checks that the Go form of every name in a complete topology is an identifier.
func checkNames(t *testing.T, topology *Topology) {
	t.Helper()
	seen := map[string]bool{}
	for _, p := range topology.Processors {
		if !isIdentifier(p.Ident) || seen[p.Ident] {
			t.Errorf("the Go name of processor %q is %q", p.Name.Value, p.Ident)
		}
		seen[p.Ident] = true
		if p.Instances < 1 || p.Instances > instancesMax {
			t.Errorf("%q has %d instances", p.Name.Value, p.Instances)
		}
		if p.Type.Value != "" {
			if _, err := ParseType(p.Type.Value); err != nil {
				t.Error(err)
			}
		}
		if p.New.Value != "" && !isIdentifier(p.New.Value) {
			t.Errorf("the new function is %q", p.New.Value)
		}
	}
	for _, e := range topology.Edges {
		if (e.Every == 0) != isIdentifier(Exported(e.Message.Value)) {
			t.Errorf("the message of %s is %q", e.title(), e.Message.Value)
		}
		if e.Capacity < 1 || e.Capacity > capacityMax {
			t.Errorf("the capacity of %s is %d", e.title(), e.Capacity)
		}
		if to := topology.Processors[e.To]; to.External || e.Every == 0 && to.Instances > 1 && e.Route.Kind == RouteNone {
			t.Errorf("the edge %s has no valid receiver", e.title())
		}
	}
	for _, m := range topology.Messages {
		if _, err := ParseType(m.Type.Value); err != nil {
			t.Error(err)
		}
	}
	if message, _ := outputProblem(topology.Output.Value); message != "" {
		t.Error(message)
	}
}
