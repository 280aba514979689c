package spec

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/spec/finding"
)

// hostileTime is the limit of 5 s on an idle host, and a reserve for a host that runs other tests
// at the same time.
const hostileTime = 20 * time.Second

// TestHostile parses files that try to take much time or memory. Each must be rejected with a
// finding at the right position, within 5 s and 1 GB.
func TestHostile(t *testing.T) {
	speed.Landing(t)
	const head = "version: 1\nname: hostile\n"
	const size = bytesMax - 1024
	fill := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	numbered := func(n int, format string) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, format, i)
		}
		return out.String()
	}
	for _, c := range []struct {
		name, src, code string
		line            int // line of one finding with the code
	}{
		{"9 MB", strings.Repeat("# comment\n", 900_000), finding.Limit, 0},
		{"40,000 repeated keys", head + strings.Repeat("a: 1\n", 40_000), finding.DuplicateKey, 4},
		{"40,000 repeated processors", head + "processors:\n" + strings.Repeat("  a: {}\n", 40_000), finding.DuplicateKey, 5},
		{"9,000 deep lists", head + "a: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000), finding.Limit, 3},
		{"9,000 deep mappings", head + "a: " + strings.Repeat("{a: ", 9000) + strings.Repeat("}", 9000), finding.Limit, 3},
		{"2,000 deep blocks", head + stairs(2000), finding.Limit, 2 + depthMax + 1},
		{"unclosed lists", fill("["), finding.Limit, 1},
		{"only dashes", fill("- "), finding.Limit, 1},
		{"alias bomb", head + bomb(9, 9) + "processors: {a: {new: New, with: {x: *a8}}}\nedges: []\n", finding.Limit, 0},
		{"alias bomb in merge keys", head + mergeBomb(30) + "processors: {<<: *m30}\nedges: []\n", finding.Limit, 0},
		{"alias inside itself", head + "processors: {a: &a {with: {x: *a}}}\nedges: []\n", finding.Alias, 3},
		{"many aliases of one list", head + "x-a: &a [" + strings.Repeat("1,", 50_000) + "]\nprocessors: {a: {new: New, with: {x: [" + strings.Repeat("*a,", 50_000) + "]}}}\nedges: []\n", finding.Limit, 0},
		{"many scalars", head + "a: [" + fill("a,") + "]\n", finding.Limit, 3},
		{"many scalars in use", head + "processors: {a: {new: New, with: {x: [" + fill("a,") + "]}}}\nedges: []\n", finding.Limit, 3},
		{"many empty mappings", head + "edges: [" + fill("{},") + "]\n", finding.Limit, 3},
		{"many quoted", head + "edges: [" + fill("'',") + "]\n", finding.Limit, 3},
		{"many dashes", head + "edges:\n" + fill("-\n"), finding.Limit, 0},
		{"many wrong keys", head + "processors: {a: {" + numbered(200_000, "k%d: 1,") + "}}\nedges: []\n", finding.UnknownKey, 3},
		{"many wide keys on a line", head + "processors: {a: {" + numbered(100_000, "ключ%d: 1,") + "}}\nedges: []\n", finding.UnknownKey, 3},
		{"too many processors", head + "processors: {" + numbered(processorsMax+1, "p%d: {},") + "}\nedges: []\n", finding.Limit, 3},
		{"too many edges", head + "processors: {a: {}}\nedges:\n" + strings.Repeat("  - a -> a: A\n", edgesMax+1), finding.Limit, 5 + edgesMax},
		{"too many of both", head + "edges: [" + strings.Repeat("a -> a: A,", edgesMax+1) + "]\nprocessors: {" + numbered(processorsMax+1, "p%d: {},") + "}\n", finding.Limit, 3},
		{"many wrong processors", head + "processors:\n" + numbered(processorsMax, "  p%d: {instances: 0}\n") + "edges: []\n", finding.OutOfRange, 4},
		{"many dangling edges", head + "processors: {" + numbered(processorsMax, "processor-%d: {},") + "}\nedges:\n" + numbered(edgesMax, "  - prcessor-x%d -> procesor-y: A\n"), finding.NotDeclared, 5},
		{"many equal edges", head + "processors: {a: {}}\nedges:\n" + strings.Repeat("  - a -> a: A\n", edgesMax), finding.EdgeTwice, 6},
		{"many colliding names", head + "processors: {" + numbered(processorsMax/2, "p%[1]d: {}, P%[1]d: {},") + "}\nedges: []\n", finding.NamesCollide, 3},
		{"many broadcasts in a cycle", head + "processors: {" + numbered(4096, "p%d: {instances: 2},") + "}\nedges:\n" + broadcastCycle(4096), finding.GrowingRing, 5},
		{"a cycle of dead letters", head + "processors:\n" + deadLetters(processorsMax) + "edges: []\n", finding.DeadLetter, 4},
		{"many members of one group", head + "processors: {a: {}}\ngroups: {g: {processors: [" + strings.Repeat("a,", 400_000) + "]}}\nedges: []\n", finding.Member, 4},
		{"many unknown members", head + "processors: {" + numbered(processorsMax, "processor-%d: {},") + "}\ngroups: {g: {processors: [" + numbered(200_000, "prcessor-x%d,") + "]}}\nedges: []\n", finding.NotDeclared, 4},
		{"many restarts", head + "processors:\n" + numbered(processorsMax, "  p%d: {restart: {policy: always, max_restarts: 1000000, delay: 1ns, window: 1000000h}}\n") + "edges: []\n", finding.NoEdges, 4},
		{"one long name", head + "processors: {" + fill("a") + ": {}}\nedges: []\n", finding.Syntax, 3},
		{"one long edge", head + "processors: {a: {}}\nedges:\n  - " + fill("a -> ") + "a: A\n", finding.Syntax, 5},
		{"one long type", head + "messages: {A: \"" + fill("*") + "\"}\nprocessors: {a: {}}\nedges: []\n", finding.Type, 3},
		{"one long number", head + "processors: {a: {instances: " + fill("9") + "}}\nedges: []\n", finding.WrongType, 3},
		{"a large exponent", head + "processors: {a: {instances: 1e308}}\nedges: []\n", finding.OutOfRange, 3},
		{"comments", fill("#\n"), finding.Empty, 0},
		{"documents", fill("---\n"), finding.Empty, 0},
		{"tags", head + "a: " + fill("!a "), finding.Syntax, 0},
		{"anchors", head + "a: " + fill("&a "), finding.Syntax, 0},
		{"anchored scalars", head + "edges: [" + fill("&a 1,") + "]\n", finding.Limit, 3},
		{"noise", noise(1 << 16), "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			findings, elapsed, peak := measure([]byte(c.src))
			t.Logf("%d bytes, %d findings, %v, %d MB", len(c.src), len(findings), elapsed.Round(time.Millisecond), peak>>20)
			if elapsed > hostileTime {
				t.Errorf("Parse took %v", elapsed)
			}
			if peak > 1<<30 {
				t.Errorf("Parse took %d MB", peak>>20)
			}
			if len(findings) > findingsMax+1 {
				t.Errorf("got %d findings, want at most %d", len(findings), findingsMax+1)
			}
			if c.code == "" {
				return
			}
			for _, f := range findings {
				if f.Code == c.code && (c.line == 0 || f.Range.Line == c.line) {
					return
				}
			}
			for _, f := range findings[:min(len(findings), 3)] {
				t.Log(f.Code, f.Range, f.Message)
			}
			t.Errorf("no finding %s on line %d", c.code, c.line)
		})
	}
}

// deadLetters returns n processors, each of which sends its dead letters to the next one.
func deadLetters(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "  p%d: {on_error: {then: skip, dead_letter: p%d}}\n", i, (i+1)%n)
	}
	return out.String()
}

// measure parses and prints a file. It returns the elapsed time and the largest memory in use.
func measure(src []byte) (findings []finding.Finding, elapsed time.Duration, peak uint64) {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			if now.HeapAlloc > before.HeapAlloc {
				peak = max(peak, now.HeapAlloc-before.HeapAlloc)
			}
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	start := time.Now()
	_, findings = Parse("hostile.yml", src)
	var out strings.Builder
	_ = finding.WriteText(&out, findings, map[string][]byte{"hostile.yml": src}, true)
	elapsed = time.Since(start)
	close(stop)
	<-done
	return findings, elapsed, peak
}

// bomb returns nested lists, each of which has width aliases of the previous list.
func bomb(depth, width int) string {
	var out strings.Builder
	out.WriteString("x-bomb:\n  - &a0 [x]\n")
	for i := 1; i < depth; i++ {
		fmt.Fprintf(&out, "  - &a%d [%s]\n", i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), width), ","))
	}
	return out.String()
}

// mergeBomb returns mappings, each of which merges the previous one twice.
func mergeBomb(depth int) string {
	var out strings.Builder
	out.WriteString("x-bomb:\n  - &m0 {x: y}\n")
	for i := 1; i <= depth; i++ {
		fmt.Fprintf(&out, "  - &m%d {<<: [*m%d, *m%d]}\n", i, i-1, i-1)
	}
	return out.String()
}

// stairs returns n mappings, each nested in the previous one.
func stairs(n int) string {
	var out strings.Builder
	for i := range n {
		out.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return out.String()
}

// broadcastCycle returns n edges with broadcasts that form a cycle.
func broadcastCycle(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "  - p%d -> p%d: {message: A, route: broadcast}\n", i, (i+1)%n)
	}
	return out.String()
}

// noise returns elements of YAML in random order.
func noise(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	units := []string{"a", ":", " ", "\n", "- ", "{", "}", "[", "]", ",", "&a ", "*a ", "<<: ", "\"", "'", "|", "#", "é", "  "}
	var out strings.Builder
	for out.Len() < n {
		out.WriteString(units[random.IntN(len(units))])
	}
	return out.String()
}

// TestLargest parses a topology near all limits.
func TestLargest(t *testing.T) {
	speed.Landing(t)
	var src strings.Builder
	src.WriteString("version: 1\nname: largest\nprocessors:\n")
	for i := range processorsMax {
		fmt.Fprintf(&src, "  p%d: {instances: 4}\n", i)
	}
	src.WriteString("edges:\n")
	for i := range 60_000 {
		fmt.Fprintf(&src, "  - p%d -> p%d: {message: M%d, key: A}\n", i%processorsMax, i*7%processorsMax, i/processorsMax)
	}
	findings, elapsed, peak := measure([]byte(src.String()))
	t.Logf("%d bytes, %v, %d MB", src.Len(), elapsed, peak>>20)
	if finding.HasErrors(findings) || peak > 1<<30 {
		t.Error(peak, findings[:min(len(findings), 3)])
	}
}
