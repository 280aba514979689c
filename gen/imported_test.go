package gen_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/spec/finding"
)

// importedTopologies are three topologies. Handlers of outer use the code that is generated
// for middle, in their bodies, in a field and through package between. The same holds for
// middle and inner. MODULE is the path of the folder.
const importedTopologies = `
-- inner/topology.yml --
version: 1
name: inner
processors: {feed: {}, sink: {}}
edges: [feed -> sink: Line]
-- inner/inner.go --
package inner

import "github.com/topogen/topogen/runtime/topo"

type Line struct{}

type Feed struct{}

func (Feed) Ping(out *FeedSender) error { return topo.Done }

type Sink struct{}

func (Sink) ReceiveLine(Line) {}
-- between/between.go --
package between

import "MODULE/inner"

type Config struct{ Feed *inner.FeedSender }

func Start(t *inner.Topology) error { return nil }
-- middle/topology.yml --
version: 1
name: middle
processors: {feed: {}, sink: {}}
edges: [feed -> sink: Line]
-- middle/middle.go --
package middle

import (
	"MODULE/between"
	"MODULE/inner"
)

type Line struct{ Of *inner.Topology }

type Feed struct{ between.Config }

func (f *Feed) Ping(out *FeedSender) error {
	t, err := inner.New(inner.Processors{})
	if err != nil {
		return err
	}
	f.Config.Feed = nil
	if err := between.Start(t); err != nil {
		return err
	}
	return out.SendLine(Line{Of: t})
}

type Sink struct{}

func (Sink) ReceiveLine(Line) {}
-- outer/topology.yml --
version: 1
name: outer
processors: {feed: {}, sink: {}, out: {}}
messages: {Line: MODULE/middle.Line}
edges: [feed -> sink: Line, sink -> out: Started]
-- outer/outer.go --
package outer

import (
	"context"

	"MODULE/middle"
)

type Started struct{ Topology *middle.Topology }

type Feed struct{ middle.Feed }

func (f Feed) Ping(out *FeedSender) error { return out.SendLine(middle.Line{}) }

type Sink struct{}

func (Sink) ReceiveLine(m middle.Line, out *SinkSender) {
	t, _ := middle.New(middle.Processors{})
	out.SendStarted(Started{Topology: t})
	_ = m.Of.Run(context.Background())
}

type Out struct{}

func (Out) ReceiveStarted(Started) {}
`

// writeImported writes the topologies into a folder of this module, which has the runtime.
// edit changes the archive.
func writeImported(t *testing.T, edit ...string) (dir string) {
	t.Helper()
	rerun.WhenCodeChanges(t) // the go command reads the runtime
	dir, err := os.MkdirTemp("testdata", "imported")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text := strings.NewReplacer(edit...).Replace(importedTopologies)
	text = strings.ReplaceAll(text, "MODULE", path.Join("github.com/topogen/topogen/gen", filepath.ToSlash(dir)))
	for _, f := range txtar.Parse([]byte(text)).Files {
		name := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// generateIn generates the topologies in these folders in one call.
func generateIn(t *testing.T, dir string, names ...string) []gen.Result {
	t.Helper()
	var in []gen.Input
	for _, name := range names {
		file := filepath.Join(dir, name, "topology.yml")
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, gen.Input{Path: file, Source: source})
	}
	return gen.GenerateAll(t.Context(), in, gen.Options{})
}

// bodies writes the files of a result, and returns them by name.
func bodies(t *testing.T, r gen.Result) map[string]string {
	t.Helper()
	files := make(map[string]string)
	for _, f := range r.Files {
		files[f.Name] = string(f.Body)
	}
	return files
}

// said is the text of findings.
func said(t *testing.T, findings []finding.Finding) string {
	t.Helper()
	var text strings.Builder
	if err := finding.WriteText(&text, findings, nil, false); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestImportedTopologies generates topologies that use each other's generated code, in one
// call and in separate calls, without code on disk. The order must make no difference.
func TestImportedTopologies(t *testing.T) {
	dir := writeImported(t)
	names := []string{"inner", "middle", "outer"}
	want := generateIn(t, dir, names...)
	for i, r := range want {
		if len(r.Findings) > 0 || len(r.Files) != 2 {
			t.Fatalf("%s: %d files\n%s", names[i], len(r.Files), said(t, r.Findings))
		}
	}
	slices.Reverse(names)
	for i, r := range generateIn(t, dir, names...) {
		if got, want := bodies(t, r), bodies(t, want[2-i]); len(r.Findings) > 0 || got["topology_gen.go"] != want["topology_gen.go"] {
			t.Errorf("%s in reverse order: other files\n%s", names[i], said(t, r.Findings))
		}
	}
	for i, name := range names {
		r := generateIn(t, dir, name)[0]
		if got, want := bodies(t, r), bodies(t, want[2-i]); len(r.Findings) > 0 || got["topology_gen.go"] != want["topology_gen.go"] {
			t.Errorf("%s alone: other files\n%s", name, said(t, r.Findings))
		}
		for _, other := range names[i:] {
			if file := filepath.Join(dir, other, "topology.yml"); !slices.Contains(r.Inputs, file) {
				t.Errorf("%s does not depend on %s", name, file)
			}
		}
	}
}

// TestImportedTopologyWithErrors checks that the error of a topology is reported once, and not
// again where its generated code is used. If the topology is not part of the call, the
// suggestion names it.
func TestImportedTopologyWithErrors(t *testing.T) {
	dir := writeImported(t, "func (Sink) ReceiveLine(Line) {}\n-- between", "-- between")
	results := generateIn(t, dir, "middle", "inner")
	if said := said(t, results[0].Findings); said != "" {
		t.Errorf("middle: got %s", said)
	}
	if n := len(results[1].Findings); n != 1 {
		t.Errorf("inner: %d findings, want 1", n)
	}
	for _, f := range generateIn(t, dir, "middle")[0].Findings {
		if want := "inner/topology.yml has errors: run topogen build for it, then run this build again"; !strings.HasSuffix(f.Suggestion, want) {
			t.Errorf("got %s, want %s", f.Suggestion, want)
		}
	}
}

// TestImportedTopologyElsewhere checks a topology whose file is not in the folder of its
// package. Until its code is generated, the suggestion says what to run.
func TestImportedTopologyElsewhere(t *testing.T) {
	dir := writeImported(t, "-- inner/topology.yml --\nversion: 1\n", "-- topology.yml --\nversion: 1\noutput: inner/topology_gen.go\n")
	found := generateIn(t, dir, "middle")[0].Findings
	if len(found) == 0 {
		t.Fatal("no findings")
	}
	const want = "run topogen build for the topology of package "
	for _, f := range found {
		if !strings.Contains(f.Suggestion, want) {
			t.Errorf("got %q, want %q", f.Suggestion, want)
		}
	}
	if found := generateIn(t, dir, "middle", ".")[0].Findings; len(found) > 0 {
		t.Errorf("in one call: %s", said(t, found))
	}
}
