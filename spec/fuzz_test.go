package spec

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
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
			checkPlaces(t, topology)
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

// checkPlaces checks that each processor of a complete topology has a place in the cluster, and
// that values without an encoding stay on their node.
func checkPlaces(t *testing.T, topology *Topology) {
	t.Helper()
	c := topology.Cluster
	for i, p := range topology.Processors {
		place := p.Placement
		switch {
		case (c != nil) != (place.Kind != Nowhere):
			t.Errorf("%q has the placement %q", p.Name.Value, place.Kind)
		case place.Kind == OnNode && !slices.ContainsFunc(c.Nodes, func(n Peer) bool { return n.Name.Value == place.Node.Value }):
			t.Errorf("%q is on the unknown node %q", p.Name.Value, place.Node.Value)
		case c != nil && (place.With > i || place.Kind != Spread && place.With != i || topology.Processors[place.With].Instances != p.Instances):
			t.Errorf("%q is placed with processor %d", p.Name.Value, place.With)
		case topology.DeadLettersCross(i):
			t.Errorf("dead letters of %q leave their node", p.Name.Value)
		}
	}
	for i := range topology.Edges {
		e := &topology.Edges[i]
		if topology.Crosses(e) && (topology.isMachine(e.From) || topology.isMachine(e.To)) {
			t.Errorf("the edge %s of a state machine leaves its node", e.title())
		}
	}
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
		if p.Instances < 1 || p.Instances > placedInstances {
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
		if e.Capacity < 1 {
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
