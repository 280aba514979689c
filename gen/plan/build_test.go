package plan

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

var update = flag.Bool("update", false, "write what is built into the cases")

// build parses a topology without errors in the file and plans it.
func build(t *testing.T, text []byte) (*Plan, []finding.Finding) {
	t.Helper()
	topology, findings := spec.Parse("topology.yml", text)
	for _, f := range findings {
		if f.Severity == finding.Error {
			t.Fatal(f)
		}
	}
	return Outline(topology, Package{Name: "orders", Path: "example.com/orders"})
}

// TestOutline plans the topology of each testdata/*.txtar and compares the plan with the section
// want.
func TestOutline(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no cases", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			p, findings := build(t, archive.Files[0].Data)
			got := describe(p, findings)
			if want := string(archive.Files[1].Data); got != want && !*update {
				t.Error(cmp.Diff(want, got))
			}
			if *update {
				archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestExampleOfTheCatalogue checks the example for colliding names, the only finding of this
// package.
func TestExampleOfTheCatalogue(t *testing.T) {
	example, _ := finding.Explain(finding.Generated)
	if _, findings := build(t, []byte(example.Wrong)); len(findings) != 1 || findings[0].Code != finding.Generated {
		t.Errorf("the wrong example has %v", findings)
	}
	if _, findings := build(t, []byte(example.Right)); len(findings) > 0 {
		t.Errorf("the right example has %v", findings)
	}
}

// describe formats a plan.
func describe(p *Plan, findings []finding.Finding) string {
	var out bytes.Buffer
	for _, f := range findings {
		fmt.Fprintf(&out, "%s:%d:%d: %s %s\n", f.File, f.Range.Line, f.Range.Column, f.Code, f.Message)
	}
	fmt.Fprintf(&out, "package %s %s, %s and %s from %s\n", p.Package, p.ImportPath, p.PortsFile, p.Output, p.Source)
	for i := range p.Processors {
		q := &p.Processors[i]
		fmt.Fprintf(&out, "processor %d %s %s (%s) in group %d, in %v out %v, sender %t source %t\n",
			i, q.Ident, q.Local, q.Type, q.Group, q.Incoming, q.Outgoing, q.HasSender(), q.Source())
		for _, s := range q.Sends {
			fmt.Fprintf(&out, "\t%s(%s)", s.Name, s.Type)
			if s.Error {
				out.WriteString(" error")
			}
			fmt.Fprintf(&out, " along %v", s.Edges)
			if s.Ask != "" {
				out.WriteString(" and " + s.Ask)
			}
			out.WriteString("\n")
		}
	}
	routes := [...]string{"single", "key", "local", "id", "range", "broadcast", "to caller", "to node"}
	for i := range p.Edges {
		e := &p.Edges[i]
		fmt.Fprintf(&out, "edge %d %s (%s) %s %s, %d %s, %v", i, e.Ident, p.EdgeText(i), e.Type, routes[e.Route], e.Capacity, e.Full, p.Handlers(i))
		if e.Reply != "" {
			fmt.Fprintf(&out, ", reply %s by %d", e.ReplyType, e.ReplyEdge)
		}
		if e.ReplyOf >= 0 {
			fmt.Fprintf(&out, ", reply of %d", e.ReplyOf)
		}
		if e.InCycle {
			out.WriteString(", in a cycle")
		}
		if e.Crosses {
			out.WriteString(", crosses " + e.Delivery)
		}
		out.WriteString("\n")
	}
	for _, l := range p.Links {
		fmt.Fprintf(&out, "link %s %v, sequenced %t, in cycle %t\n", l.Ident, l.Edges, l.Sequenced, l.InCycle)
	}
	for i, g := range p.Groups {
		fmt.Fprintf(&out, "group %d %v, cyclic %t, up %v down %v, only timers %t\n", i, g.Processors, g.Cyclic, g.Upstream, g.Downstream, g.OnlyTimers)
	}
	if c := p.Cluster; c != nil {
		fmt.Fprintf(&out, "cluster %+v\n", *c)
		for i := range p.Processors {
			fmt.Fprintf(&out, "place of %s: %+v\n", p.Processors[i].Name, *p.Processors[i].Placement)
		}
	}
	return out.String()
}

func TestPortsFile(t *testing.T) {
	for output, want := range map[string]string{
		"topology_gen.go": "topology_ports_gen.go",
		"wiring.go":       "wiring_ports_gen.go",
		"inner/a_gen.go":  "a_ports_gen.go",
	} {
		if got := PortsFile(output); got != want {
			t.Errorf("PortsFile(%q) = %q, want %q", output, got, want)
		}
	}
}

func TestLocalName(t *testing.T) {
	for ident, want := range map[string]string{
		"LineParser": "lineParser", "Range": "rangeProcessor", "Len": "lenProcessor", "Ctx": "ctxProcessor", "X": "x",
	} {
		if got := localName(ident); got != want {
			t.Errorf("localName(%q) = %q, want %q", ident, got, want)
		}
	}
}
