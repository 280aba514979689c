package graph

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

var pictures = flag.String("pictures", "", "write sample pictures to this folder, to look at")

func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("needs -pictures")
	}
	for name, g := range map[string]Graph{
		"shop": shop(), "loop": loop(), "chain": chain(14), "tangle": tangle(20, 30, 3),
		"5": company(5, 3), "20": company(20, 1), "20b": company(20, 5), "60": company(60, 2), "60b": company(60, 9),
		"shop-load": loaded(shop(), 1), "loop-load": loaded(loop(), 2), "5-load": loaded(company(5, 3), 3), "20-load": loaded(company(20, 1), 4),
	} {
		for suffix, l := range map[string]layout{"": arrange(g), "-down": arrangeIn(g, downward)} {
			if err := os.WriteFile(filepath.Join(*pictures, name+suffix+".svg"), draw(g, l), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// flaws lists the errors of a layout: parts that overlap or leave the page, and lines that are
// not straight or touch other parts.
func flaws(g Graph, l layout) []string {
	var found []string
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	type thing struct {
		what string
		rect
		edge int // whose line may run through it
	}
	var things []thing
	for i, r := range l.boxes {
		things = append(things, thing{fmt.Sprintf("box %d", i), r, -1})
	}
	for i, r := range l.labels {
		if r != (rect{}) {
			things = append(things, thing{fmt.Sprintf("label %d", i), r, i})
		}
	}
	for i, a := range things {
		if a.x < 0 || a.y < 0 || a.x+a.w > l.width || a.y+a.h > l.height {
			report("%s %v leaves the page", a.what, a.rect)
		}
		for _, b := range things[:i] {
			if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h {
				report("%s %v and %s %v overlap", a.what, a.rect, b.what, b.rect)
			}
		}
	}
	for e, line := range l.lines {
		if !g.drawable(g.Edges[e]) {
			if line != nil {
				report("edge %d is drawn", e)
			}
			continue
		}
		if len(line) < 2 {
			report("edge %d has no line", e)
			continue
		}
		for k := range line[1:] {
			p, q := line[k], line[k+1]
			if (p.x == q.x) == (p.y == q.y) {
				report("edge %d: segment %v %v", e, p, q)
			}
			r := rect{min(p.x, q.x), min(p.y, q.y), max(p.x, q.x) - min(p.x, q.x), max(p.y, q.y) - min(p.y, q.y)}
			if r.x < 0 || r.y < 0 || r.x+r.w > l.width || r.y+r.h > l.height {
				report("edge %d leaves the page", e)
			}
			for _, b := range things {
				if b.edge != e && r.x < b.x+b.w && b.x < r.x+r.w && r.y < b.y+b.h && b.y < r.y+r.h {
					report("edge %d %v %v runs through %s %v", e, p, q, b.what, b.rect)
				}
			}
		}
	}
	return found
}

// merged counts the places where two lines look like one.
func merged(l layout) int {
	type segment struct{ edge, at, low, high int }
	var along, across []segment
	for e, line := range l.lines {
		for k := 0; k+1 < len(line); k++ {
			p, q := line[k], line[k+1]
			if p.y == q.y {
				along = append(along, segment{e, p.y, min(p.x, q.x), max(p.x, q.x)})
			} else {
				across = append(across, segment{e, p.x, min(p.y, q.y), max(p.y, q.y)})
			}
		}
	}
	n := 0
	for _, list := range [][]segment{along, across} {
		for i, a := range list {
			for _, b := range list[:i] {
				if d := a.at - b.at; a.edge != b.edge && -3 < d && d < 3 && a.low < b.high && b.low < a.high {
					n++
				}
			}
		}
	}
	return n
}

// jogs counts the bends that are so short that they look like a mistake.
func jogs(l layout) (short, all int) {
	for _, line := range l.lines {
		for k := 1; k+2 < len(line); k++ {
			d := max(line[k].x-line[k+1].x, line[k+1].x-line[k].x) + max(line[k].y-line[k+1].y, line[k+1].y-line[k].y)
			across := (line[k].x == line[k+1].x) == (l.direction == rightward)
			if across {
				all++
			}
			if across && d < 8 {
				short++
			}
		}
	}
	return short, all
}

// check reports the flaws of a graph's layout in both directions, and counts features that are
// allowed but should be rare.
func check(t interface{ Errorf(string, ...any) }, g Graph, what string) (short, double, bends int) {
	for _, dir := range []direction{rightward, downward} {
		l := arrangeIn(g, dir)
		for _, f := range append(flaws(g, l), textFlaws(draw(g, l))...) {
			t.Errorf("%s, direction %d: %s", what, dir, f)
		}
		s, b := jogs(l)
		short, double, bends = short+s, double+merged(l), bends+b
	}
	return short, double, bends
}

func TestNothingOverlaps(t *testing.T) {
	seeds := speed.Pick[uint64](t, 1, 8, 100)
	short, double, bends := 0, 0, 0
	for _, size := range []int{5, 20, 60} {
		for seed := range seeds {
			plain := []Graph{company(size, seed), tangle(size, size*3/2, seed)}
			for _, g := range append(plain, loaded(plain[0], seed), loaded(plain[1], seed)) {
				s, d, b := check(t, g, fmt.Sprintf("%s of %d, seed %d", g.Name, size, seed))
				short, double, bends = short+s, double+d, bends+b
			}
		}
	}
	t.Logf("%d bends, %d of them short; %d pairs of lines look like one", bends, short, double)
	if short*40 > bends {
		t.Errorf("%d of %d bends are short", short, bends)
	}
	if double*500 > bends {
		t.Errorf("%d pairs of lines look like one, with %d bends", double, bends)
	}
}

func TestNothingOverlapsInSmallGraphs(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(0, 9).Draw(t, "nodes")
		var g Graph
		for range nodes {
			g.Nodes = append(g.Nodes, Node{
				Name:      rapid.StringN(0, 12, -1).Draw(t, "name"),
				Type:      rapid.SampledFrom([]string{"", "T", "a.Longer"}).Draw(t, "type"),
				Instances: rapid.IntRange(0, 2).Draw(t, "instances"),
				Blocking:  rapid.Bool().Draw(t, "blocking"),
				External:  rapid.Bool().Draw(t, "external"),
				Timer:     rapid.Bool().Draw(t, "timer"),
			})
		}
		for range rapid.IntRange(0, 14).Draw(t, "edges") {
			g.Edges = append(g.Edges, Edge{
				From:    rapid.IntRange(-1, nodes).Draw(t, "from"), // -1 and nodes are not nodes
				To:      rapid.IntRange(0, nodes).Draw(t, "to"),
				Message: rapid.StringN(0, 9, -1).Draw(t, "message"),
				Reply:   rapid.SampledFrom([]string{"", "", "R"}).Draw(t, "reply"),
				Note:    rapid.SampledFrom([]string{"", "key A", "key Account.ID, drop-oldest 64, shared"}).Draw(t, "note"),
			})
		}
		check(t, g, "graph")
		check(t, loaded(g, rapid.Uint64().Draw(t, "load")), "graph with a load")
	})
}

func TestParallelEdgesAreApart(t *testing.T) {
	g := Graph{Nodes: []Node{{Name: "a"}, {Name: "b"}}}
	for range 4 {
		g.Edges = append(g.Edges, Edge{To: 1, Message: "M"}, Edge{From: 1, Message: "Back"}, Edge{Message: "Self"})
	}
	check(t, g, "parallel")
	l := arrange(g)
	seen := make(map[point]int)
	for e, line := range l.lines {
		for _, p := range []point{line[0], line[len(line)-1]} {
			if other, ok := seen[p]; ok {
				t.Errorf("edges %d and %d meet a box in the same place", other, e)
			}
			seen[p] = e
		}
		if back := g.Edges[e].Message != "M"; l.back[e] != back {
			t.Errorf("edge %d (%s): back %v", e, g.Edges[e].Message, l.back[e])
		}
	}
}

func TestEdgesEndAtTheirBoxes(t *testing.T) {
	g := company(20, 4)
	for _, dir := range []direction{rightward, downward} {
		l := arrangeIn(g, dir)
		for e, line := range l.lines {
			from, to := l.boxes[g.Edges[e].From], l.boxes[g.Edges[e].To]
			a, b := line[0], line[len(line)-1]
			if dir == downward {
				a, b = point{a.y, a.x}, point{b.y, b.x}
				from, to = rect{from.y, from.x, from.h, from.w}, rect{to.y, to.x, to.h, to.w}
			}
			if a.x != from.x+from.w || a.y <= from.y || a.y >= from.y+from.h {
				t.Errorf("direction %d: edge %d leaves %v at %v", dir, e, from, a)
			}
			if b.x != to.x || b.y <= to.y || b.y >= to.y+to.h {
				t.Errorf("direction %d: edge %d enters %v at %v", dir, e, to, b)
			}
		}
	}
}

func TestDirectionFitsThePage(t *testing.T) {
	for _, c := range []struct {
		g    Graph
		want direction
	}{{shop(), rightward}, {loop(), rightward}, {chain(14), downward}, {chain(bothMax + 50), downward}, {fan(bothMax + 50), rightward}} {
		if l := arrange(c.g); l.direction != c.want {
			t.Errorf("%s of %d: direction %d, want %d", c.g.Name, len(c.g.Nodes), l.direction, c.want)
		}
	}
}

// A thousand processors take under a second; the bound leaves room for slow
// machines and the race detector.
func TestLargeGraphInTime(t *testing.T) {
	speed.Landing(t)
	g := company(1000, 1)
	start := time.Now()
	l := arrange(g)
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	t.Logf("%d×%d in %v", l.width, l.height, time.Since(start))
	for _, f := range flaws(g, l) {
		t.Error(f)
	}
}

func BenchmarkSVG(b *testing.B) {
	for _, size := range []int{20, 60, 1000} {
		g := company(size, 1)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				SVG(g)
			}
		})
	}
}

// TestDrawable checks which large graphs are drawable.
func TestDrawable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	random := func(nodes, edges int) (g Graph) {
		g.Nodes = make([]Node, nodes)
		for range edges {
			g.Edges = append(g.Edges, Edge{From: r.IntN(nodes), To: r.IntN(nodes)})
		}
		return g
	}
	chain := Graph{Nodes: make([]Node, 16_000)}
	for i := range len(chain.Nodes) - 1 {
		chain.Edges = append(chain.Edges, Edge{From: i, To: i + 1})
	}
	for name, c := range map[string]struct {
		graph Graph
		want  bool
	}{
		"nothing": {Graph{}, true}, "a chain": {chain, true}, "some": {random(60, 120), true}, "many": {random(1000, 16_000), false},
	} {
		if got := c.graph.Drawable(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
