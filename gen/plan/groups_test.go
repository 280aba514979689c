package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestGroupsAreComponentsInOrder checks that groups are the sets of mutually reachable
// processors, with upstream groups first.
func TestGroupsAreComponentsInOrder(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "processors")
		reach := make([][]bool, n)
		for i := range reach {
			reach[i] = make([]bool, n)
		}
		var links []Link
		for range rapid.IntRange(0, 2*n).Draw(t, "links") {
			from, to := rapid.IntRange(0, n-1).Draw(t, "from"), rapid.IntRange(0, n-1).Draw(t, "to")
			if !slices.ContainsFunc(links, func(l Link) bool { return l.From == from && l.To == to }) {
				links = append(links, Link{From: from, To: to})
			}
			reach[from][to] = true
		}
		b := &builder{plan: &Plan{Processors: make([]Processor, n), Links: links}}
		b.groups()
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		p := b.plan
		for i := range n {
			g := p.Groups[p.Processors[i].Group]
			if !slices.Contains(g.Processors, i) || !slices.IsSorted(g.Processors) || g.Cyclic != reach[i][i] {
				t.Fatalf("processor %d: group %+v", i, g)
			}
			for j := range n {
				same := p.Processors[i].Group == p.Processors[j].Group
				if want := i == j || reach[i][j] && reach[j][i]; same != want {
					t.Fatalf("%d and %d in one group: %t, want %t", i, j, same, want)
				}
				if reach[i][j] && p.Processors[i].Group > p.Processors[j].Group {
					t.Fatalf("%d comes after %d", i, j)
				}
			}
		}
		for _, l := range p.Links {
			from, to := p.Processors[l.From].Group, p.Processors[l.To].Group
			if l.InCycle != (from == to) {
				t.Fatalf("link %+v", l)
			}
			if from != to && (!slices.Contains(p.Groups[from].Downstream, to) || !slices.Contains(p.Groups[to].Upstream, from)) {
				t.Fatalf("groups %d and %d do not know each other", from, to)
			}
		}
	})
}

// TestLongChain checks that the plan of a long chain takes linear time and constant depth.
func TestLongChain(t *testing.T) {
	const n = 4000
	var text strings.Builder
	text.WriteString("version: 1\nname: chain\nprocessors:\n")
	for i := range n {
		fmt.Fprintf(&text, "  p%d: {}\n", i)
	}
	text.WriteString("edges:\n")
	for i := range n - 1 {
		fmt.Fprintf(&text, "  - p%d -> p%d: M\n", i+1, i)
	}
	p, findings := build(t, []byte(text.String()))
	if len(findings) > 0 || len(p.Groups) != n || p.Groups[0].Processors[0] != n-1 {
		t.Errorf("%d findings, %d groups", len(findings), len(p.Groups))
	}
}
