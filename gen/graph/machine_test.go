package graph

import (
	"os"
	"testing"

	"github.com/topogen/topogen/spec"
)

// TestMachinesAreDrawn draws machines as cylinders, with one pair of edges each.
func TestMachinesAreDrawn(t *testing.T) {
	text, err := os.ReadFile("testdata/bank.yml")
	if err != nil {
		t.Fatal(err)
	}
	topology, findings := spec.Parse("testdata/bank.yml", text)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	g := FromTopology(topology)
	for _, f := range formats {
		t.Run(f.ext, func(t *testing.T) { golden(t, "bank."+f.ext, f.write(g)) })
	}
	check(t, g, "bank")
}
