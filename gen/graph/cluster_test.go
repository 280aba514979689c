package graph

import (
	"os"
	"testing"

	"github.com/topogen/topogen/spec"
)

// TestClustersAreDrawn draws the placement of each kind, and edges between nodes.
func TestClustersAreDrawn(t *testing.T) {
	text, err := os.ReadFile("testdata/counters.yml")
	if err != nil {
		t.Fatal(err)
	}
	topology, findings := spec.Parse("testdata/counters.yml", text)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	g := FromTopology(topology)
	for _, f := range formats {
		t.Run(f.ext, func(t *testing.T) { golden(t, "counters."+f.ext, f.write(g)) })
	}
	check(t, g, "counters")
}
