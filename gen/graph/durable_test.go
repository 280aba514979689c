package graph

import (
	"os"
	"strings"
	"testing"

	"github.com/topogen/topogen/spec"
)

// TestDurableEdgesAreDrawn draws durable edges with every option.
func TestDurableEdgesAreDrawn(t *testing.T) {
	text, err := os.ReadFile("testdata/checkout.yml")
	if err != nil {
		t.Fatal(err)
	}
	topology, findings := spec.Parse("testdata/checkout.yml", text)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	g := FromTopology(topology)
	for _, f := range formats {
		t.Run(f.ext, func(t *testing.T) { golden(t, "checkout."+f.ext, f.write(g)) })
	}
	check(t, g, "checkout")
	want := "durable, once per OrderID, at most 8 and 100/s"
	if got := g.Edges[1].Note; got != want {
		t.Errorf("the note is %q, want %q", got, want)
	}
}

// TestDurableEdgesHaveALoad shows the messages that wait on the disk.
func TestDurableEdgesHaveALoad(t *testing.T) {
	l := EdgeLoad{Queues: 1, Sent: 12, Len: 3, Durable: true}
	if got := l.line(); !strings.Contains(got, "12 sent, 3 pending") {
		t.Errorf("the load is %q", got)
	}
}
