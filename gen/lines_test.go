package gen_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/spec/finding"
)

// linesMax is the maximum number of generated lines for a processor with one input and one
// output, including comments and empty lines.
const linesMax = 64

// TestLinesOfAProcessor compares two chains that differ by ten processors.
func TestLinesOfAProcessor(t *testing.T) {
	rerun.WhenCodeChanges(t)         // the go command reads the runtime
	known := cache.Open(t.TempDir()) // the go command is asked once
	if lines := (chain(t, known, 13) - chain(t, known, 3)) / 10; lines > linesMax {
		t.Errorf("a processor with one input and one output is %d lines, want at most %d", lines, linesMax)
	}
}

// chain is the number of generated lines for a chain with that many processors in the middle.
func chain(t *testing.T, known *cache.Cache, middle int) (lines int) {
	t.Helper()
	dir, err := os.MkdirTemp("testdata", "chain") // inside this module, which has the runtime
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.Abs(dir); err != nil {
		t.Fatal(err)
	}
	names, edges := "  source: {}\n", ""
	code := "package chain\n\ntype Source struct{}\n\nfunc (s *Source) Ping(out *SourceSender) error { return nil }\n"
	from := "source"
	for i := range middle {
		to := fmt.Sprint("step", i)
		names += "  " + to + ": {}\n"
		edges += fmt.Sprintf("  - %s -> %s: Message%d\n", from, to, i)
		code += fmt.Sprintf("\ntype Message%[1]d struct{ N int }\n\ntype Step%[1]d struct{}\n\nfunc (s *Step%[1]d) ReceiveMessage%[1]d(m *Message%[1]d, out *Step%[1]dSender) {}\n", i)
		from = to
	}
	names += "  last: {}\n"
	edges += "  - " + from + " -> last: End\n"
	code += "\ntype End struct{}\n\ntype Last struct{}\n\nfunc (l *Last) ReceiveEnd(m *End) {}\n"
	if err := os.WriteFile(filepath.Join(dir, "code.go"), []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	source := "version: 1\nname: chain\npackage: chain\n\nprocessors:\n" + names + "\nedges:\n" + edges
	result, findings := gen.Generate(t.Context(), gen.Input{Path: filepath.Join(dir, "topology.yml"), Source: []byte(source)}, gen.Options{Cache: known})
	if finding.HasErrors(findings) || len(result.Files) != 2 {
		t.Fatalf("%d files: %v", len(result.Files), findings)
	}
	for _, f := range result.Files {
		lines += bytes.Count(f.Body, []byte("\n"))
	}
	return lines
}
