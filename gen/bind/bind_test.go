package bind

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

var update = flag.Bool("update", false, "write the results into the cases")

// TestCases binds the topology and Go files of each testdata/*.txtar, and compares the result
// with the section want. All cases are packages of one module, so that types are loaded once.
func TestCases(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no cases", err)
	}
	dir := newModule(t)
	var inputs []Input
	var archives []*txtar.Archive
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), ".txtar"))
		unpack(t, archive, folder)
		archives = append(archives, archive)
		inputs = append(inputs, Input{Topology: parse(t, archive), Dir: folder})
	}
	results, err := Bind(context.Background(), inputs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		t.Run(filepath.Base(names[i]), func(t *testing.T) {
			got := describe(t, r)
			if r.root != nil {
				if outline, _ := plan.Outline(inputs[i].Topology, r.root.planned()); plan.Hash(outline) != plan.Hash(r.Outline) {
					t.Error("the outline was changed")
				}
			}
			for j := range archives[i].Files {
				file := &archives[i].Files[j]
				if file.Name != "want" {
					continue
				}
				if diff := cmp.Diff(string(file.Data), got); diff != "" && !*update {
					t.Errorf("(-want +got):\n%s", diff)
				}
				file.Data = []byte(got)
			}
			if *update {
				if err := os.WriteFile(names[i], txtar.Format(archives[i]), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// verify type-checks a package with generated files, by base name. Without generated files it
// uses the skeleton, which has the declarations that would be generated.
func verify(t testing.TB, r *Result, generated map[string][]byte) Verified {
	t.Helper()
	if r.root == nil {
		return Verified{}
	}
	if generated == nil {
		generated = map[string][]byte{skeletonFile: []byte(r.root.skeleton.text)}
	}
	var files []*ast.File
	for _, name := range slices.Sorted(maps.Keys(generated)) {
		file := name
		if name != skeletonFile {
			file = filepath.Join(r.Dir, name)
		}
		parsed, err := parser.ParseFile(r.Fset(), file, generated[name], parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, parsed)
	}
	v, err := r.Verify(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// plan is the plan of a result.
func (r *Result) plan() *plan.Plan { return plan.Complete(r.Outline, r.Facts) }

// newModule makes a module that has the runtime's topo package, and returns its
// folder. The go command has to compile the package again, so most tests use newFolder.
func newModule(t testing.TB) string {
	t.Helper()
	dir := memdir.Quick(t)
	writeModule(t, dir)
	return dir
}

func writeModule(t testing.TB, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, "go.mod"), "module example.com\n\ngo 1.26\n\nrequire github.com/topogen/topogen v0.0.0\n\nreplace github.com/topogen/topogen => ./topogen\n")
	write(t, filepath.Join(dir, "topogen", "go.mod"), "module github.com/topogen/topogen\n\ngo 1.26\n")
	for _, folder := range []string{"runtime/topo", "runtime/internal/alive", "runtime/internal/attempt", "runtime/internal/fencing", "runtime/internal/hold"} { // and what it imports
		files, err := filepath.Glob("../../" + folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal("the runtime is missing", err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "topogen", filepath.FromSlash(folder), filepath.Base(file)), string(text))
		}
	}
	write(t, filepath.Join(dir, "topogen", "runtime", "durable", "durable.go"), durablePackage)
}

// durablePackage has the names of the runtime's package durable that handlers and senders use.
// The package itself imports too much for these tests.
const durablePackage = `package durable

import "context"

type Context interface{ context.Context }

type Handle[R any] struct{ reply R }

type None struct{}
`

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// shared is a module for the tests that do not change it. They list the same packages, so the
// cache answers instead of the go command.
var shared struct {
	sync.Once
	dir     string
	cache   *cache.Cache
	folders int
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := os.RemoveAll(shared.dir); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// newFolder returns a folder that does not exist yet, in the shared module.
func newFolder(t testing.TB) string {
	t.Helper()
	shared.Do(func() {
		dir, err := os.MkdirTemp("", "topogen-bind")
		if err != nil {
			t.Fatal(err)
		}
		shared.dir, shared.cache = dir, cache.Open(filepath.Join(dir, "cache"))
		writeModule(t, dir)
	})
	shared.folders++
	return filepath.Join(shared.dir, fmt.Sprint("f", shared.folders), "small")
}

func unpack(t *testing.T, archive *txtar.Archive, dir string) {
	t.Helper()
	for _, file := range archive.Files {
		if file.Name != "want" {
			write(t, filepath.Join(dir, file.Name), string(file.Data))
		}
	}
}

// parse reads the topology of a case. The file itself has no errors.
func parse(t *testing.T, archive *txtar.Archive) *spec.Topology {
	t.Helper()
	for _, file := range archive.Files {
		if file.Name == "topology.yml" {
			topology, findings := spec.Parse("topology.yml", file.Data)
			for _, f := range findings {
				if f.Severity == finding.Error {
					t.Fatalf("%v", f)
				}
			}
			return topology
		}
	}
	t.Fatal("no topology.yml")
	return nil
}

// describe formats a result.
func describe(t *testing.T, r *Result) string {
	t.Helper()
	var out bytes.Buffer
	for _, f := range r.Findings {
		fmt.Fprintf(&out, "%s:%d:%d-%d: %s %s: %s\n", f.File, f.Range.Line, f.Range.Column, f.Range.EndColumn, f.Severity, f.Code, f.Message)
		if f.Suggestion != "" {
			fmt.Fprintf(&out, "\t%s\n", f.Suggestion)
		}
	}
	for _, m := range r.Messages {
		fmt.Fprintf(&out, "scaffold %s\n", m)
	}
	for _, m := range r.Missing {
		if m.Declare {
			fmt.Fprintf(&out, "scaffold type %s\n", m.Type)
		}
		if m.New != nil {
			fmt.Fprintf(&out, "scaffold %s\n", m.New.Signature)
			for _, s := range m.New.Config {
				fmt.Fprintf(&out, "scaffold %s %v\n", s, s.Imports)
			}
		}
		for _, method := range m.Methods {
			fmt.Fprintf(&out, "scaffold %s %v\n", method.Signature, method.Imports)
		}
	}
	v := verify(t, r, nil)
	for _, f := range v.User {
		fmt.Fprintf(&out, "%s:%d:%d: %s: %s\n", f.File, f.Range.Line, f.Range.Column, f.Code, f.Message)
	}
	if r.plan() == nil {
		return out.String()
	}
	for _, folder := range r.Inputs() {
		if folder != r.Dir && filepath.Base(folder) != "topo" && filepath.Base(folder) != "durable" {
			rel, err := filepath.Rel(filepath.Dir(r.Dir), folder)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&out, "reads", rel)
		}
	}
	fmt.Fprintf(&out, "package %s %s: ports %t, bound %t\n", r.plan().Package, r.plan().ImportPath, r.PortsReady, r.plan().Bound)
	for i := range r.plan().Edges {
		describeEdge(&out, r.plan(), i)
	}
	for i := range r.plan().Processors {
		describeProcessor(&out, &r.plan().Processors[i])
	}
	return out.String()
}

func describeEdge(out *bytes.Buffer, p *plan.Plan, i int) {
	e := &p.Edges[i]
	fmt.Fprintf(out, "edge %s %s", e.Ident, e.Type)
	if e.Pointerful {
		out.WriteString(" pointerful")
	}
	if e.Joins {
		out.WriteString(" joins")
	}
	if e.Route == plan.Key || e.Route == plan.ID || e.Route == plan.ToNode {
		kinds := [...]string{"string", "bytes", "int", "uint", "bool"}
		fmt.Fprintf(out, " key %s %s", kinds[e.KeyKind], strings.Join(e.Access, "."))
		if e.Method {
			out.WriteString("()")
		}
		if e.Pointers {
			fmt.Fprintf(out, " nil at %v", e.Nils)
		}
	}
	if d := e.Durable; d != nil {
		fmt.Fprintf(out, " durable %s", d.Function)
		if d.ID != nil {
			fmt.Fprintf(out, " id %s", strings.Join(d.ID.Access, "."))
		}
		if d.Limit != nil && d.Limit.Per != nil {
			fmt.Fprintf(out, " per %s", strings.Join(d.Limit.Per.Access, "."))
		}
	}
	out.WriteString("\n")
}

func describeProcessor(out *bytes.Buffer, p *plan.Processor) {
	if p.External {
		fmt.Fprintf(out, "%s: external\n", p.Name)
	} else {
		fmt.Fprintf(out, "%s: %s\n", p.Name, p.Type)
	}
	method := func(m *plan.Method) {
		if m == nil {
			return
		}
		fmt.Fprintf(out, "\t%s", m.Name)
		for _, part := range []struct {
			is   bool
			text string
		}{
			{m.Context, "ctx"},
			{m.Durable, "durable"},
			{m.Message == plan.ByPointer, "pointer"},
			{m.Out == plan.SenderOut, "sender"},
			{m.Out == plan.InterfaceOut, "interface"},
			{m.Out == plan.AdaptedOut, fmt.Sprintf("adapted%v", m.OutMethods)},
			{m.OutType != nil, fmt.Sprint(m.OutType)},
			{m.OutNames != nil, fmt.Sprint(m.OutNames)},
			{m.Reply, "reply"},
			{m.Error, "error"},
		} {
			if part.is {
				out.WriteString(" " + part.text)
			}
		}
		out.WriteString("\n")
	}
	for _, r := range p.Receives {
		fmt.Fprintf(out, "\t%d:", r.Edge)
		method(&r.Method)
	}
	for _, m := range []*plan.Method{p.Ping, p.Serve, p.Finish, p.Init, p.Close} {
		method(m)
	}
	for _, s := range p.Sends {
		if s.Clone {
			fmt.Fprintf(out, "\t%s clones\n", s.Name)
		}
	}
	if c := p.New; c != nil {
		fmt.Fprintf(out, "\tnew %s.%s %v instance %t pointer %t error %t\n", c.Import, c.Func, c.Args, c.Instance, c.Pointer, c.Error)
		if c.Config != nil {
			fmt.Fprintf(out, "\twith %s\n", describeLiteral(*c.Config))
		}
	}
}

func describeLiteral(l plan.Literal) string {
	var parts []string
	for _, f := range l.Fields {
		name := f.Name
		if f.Key != nil {
			name = f.Key.Text
		}
		parts = append(parts, name+": "+describeLiteral(f.Value))
	}
	for _, i := range l.Items {
		parts = append(parts, describeLiteral(i))
	}
	switch l.Kind {
	case plan.Basic:
		return l.Type.String() + "(" + l.Text + ")"
	case plan.PointerTo:
		return "&" + parts[0]
	case plan.NilLit:
		return l.Type.String() + "(nil)"
	}
	return l.Type.String() + "{" + strings.Join(parts, ", ") + "}"
}
