package bind

import (
	"context"
	"crypto/sha256"
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/topogen/topogen/gen/header"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/spec/finding"
)

const (
	smallTopology = `version: 1
name: small
processors: {feed: {}, sink: {}}
edges:
  - feed -> sink: M
`
	smallGo = `package small

type M struct{}
type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return nil }

type Sink struct{}

func (*Sink) ReceiveM(M) {}
`
)

// small writes the small topology and binds it.
func small(t *testing.T, dir string, files string, options Options) *Result {
	t.Helper()
	options.Cache = shared.cache
	results, err := Bind(context.Background(), []Input{writeSmall(t, dir, files)}, options)
	if err != nil {
		t.Fatal(err)
	}
	return results[0]
}

// writeSmall unpacks files over the small topology in a folder.
func writeSmall(t *testing.T, dir string, files string) Input {
	t.Helper()
	archive := txtar.Parse([]byte("-- topology.yml --\n" + smallTopology + "-- a.go --\n" + smallGo + files))
	unpack(t, archive, dir)
	last := archive.Files[0]
	for _, f := range archive.Files {
		if f.Name == "topology.yml" {
			last = f
		}
	}
	return Input{Topology: parse(t, &txtar.Archive{Files: []txtar.File{last}}), Dir: dir}
}

// TestPathsOfManyPackages checks import paths that mean several packages to the go command.
func TestPathsOfManyPackages(t *testing.T) {
	const files = "-- topology.yml --\nversion: 1\nname: small\nedges: [feed -> sink: M]\n" +
		"processors: {feed: {}, sink: {}, a: {type: cmd.T}, b: {type: std.T}, c: {type: all.T}, d: {type: tool.T}, e: {type: work.T}}\n" +
		"-- b.go --\npackage small\n\nimport (\n\t_ \"cmd\"\n\t_ \"fmt/...\"\n\t_ \"file=a.go\"\n\t_ \"-x\"\n\t_ \"a.go\"\n\t_ \"../..\"\n)\n"
	r := small(t, newFolder(t), files, Options{})
	var want []string
	for i, path := range []string{"cmd", "std", "all", "tool", "work"} {
		want = append(want, fmt.Sprintf("topology.yml:4:%d: TG314 package %s cannot be loaded: it was not found", 44+18*i+max(0, i-3), path))
	}
	if got := said(r.Findings); got != strings.Join(want, "\n") {
		t.Errorf("got %s", got)
	}
	if n := len(r.loader.listed); n > 300 {
		t.Errorf("%d packages were listed", n)
	}
}

// TestIrregularFiles checks that pipes and devices are not opened.
func TestIrregularFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no links without rights")
	}
	for name, want := range map[string]string{
		"small/b.go": "topology.yml:0:0: TG314 the package's folder cannot be read: b.go is not a regular file",
		"go.mod":     "topology.yml:0:0: TG314 go.mod is not a regular file",
	} {
		dir := newModule(t)
		in := writeSmall(t, filepath.Join(dir, "small"), "")
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.Symlink(os.DevNull, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if got := said(locate(token.NewFileSet(), newEnvironment(nil), in).reporter.findings); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
	dir := newFolder(t)
	if err := os.MkdirAll(filepath.Join(dir, "folder"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("folder", filepath.Join(dir, "b.go")); err != nil {
		t.Fatal(err)
	}
	if r := small(t, dir, "", Options{}); len(r.Findings) > 0 {
		t.Errorf("a link to a folder: %s", said(r.Findings))
	}
}

// TestRuntimeNotRequired checks that a module without the runtime has one finding, which says
// how to require it, and none about the handlers that use the runtime's types.
func TestRuntimeNotRequired(t *testing.T) {
	const files = "-- topology.yml --\nversion: 1\nname: small\ndurable: {store: ./promises}\n" +
		"processors: {feed: {external: true}, sink: {blocking: true}}\nedges:\n  - feed -> sink: {message: M, durable: true}\n" +
		"-- a.go --\npackage small\n\nimport \"github.com/topogen/topogen/runtime/durable\"\n\ntype M struct{}\n" +
		"type Sink struct{}\n\nfunc (*Sink) ReceiveM(ctx durable.Context, m M) error { return nil }\n"
	const module = "-- ../go.mod --\nmodule example.com\n\ngo 1.26\n"
	tool := "-tool github.com/topogen/topogen/cmd/topogen && go mod tidy"
	for _, c := range []struct{ module, problem, suggestion string }{
		{module, "no required module provides package github.com/topogen/topogen/runtime/topo",
			"run go mod edit -replace github.com/topogen/topogen=CLONE " + tool + ", with the folder of your clone of topogen"},
		{module + "\nreplace github.com/topogen/topogen => ./topogen\n",
			"module github.com/topogen/topogen provides package github.com/topogen/topogen/runtime/topo and is replaced but not required",
			"run go mod edit " + tool},
	} {
		r := small(t, filepath.Join(newModule(t), "small"), files+c.module, Options{})
		if got, want := said(r.Findings), "topology.yml:2:7: TG314 the runtime cannot be loaded: "+c.problem; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		} else if got := r.Findings[0].Suggestion; got != c.suggestion {
			t.Errorf("got  %s\nwant %s", got, c.suggestion)
		}
	}
}

// said formats findings briefly.
func said(findings []finding.Finding) string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s %s", f.File, f.Range.Line, f.Range.Column, f.Code, f.Message))
	}
	return strings.Join(lines, "\n")
}

func TestPlaces(t *testing.T) {
	cases := []struct {
		name, files, want string
	}{
		{"bound", "", ""},
		{"broken module", "-- ../go.mod --\nmodule a b\n", "topology.yml:0:0: TG314 go.mod cannot be read: go.mod:1: usage: module module/path"},
		{"module without a name", "-- ../go.mod --\ngo 1.26\n", "topology.yml:0:0: TG314 go.mod must declare the path of the module"},
		{"runtime not required", "-- ../go.mod --\nmodule example.com\n\ngo 1.26\n",
			"topology.yml:2:7: TG314 the runtime cannot be loaded: no required module provides package github.com/topogen/topogen/runtime/topo"},
		{"newer release", "-- ../go.mod --\nmodule example.com\n\ngo 1.99\n",
			"topology.yml:2:7: TG314 the go command cannot list packages: go: go.mod requires go >= 1.99 (running " + strings.Replace(runtime.Version(), "go", "go ", 1) + "; GOTOOLCHAIN=local)"},
		{"two packages", "-- b.go --\npackage other\n", "b.go:1:9: TG314 a folder must hold one package, got small (a.go) and other"},
		{"another package", "-- topology.yml --\n" + strings.Replace(smallTopology, "name: small", "name: small\npackage: other", 1),
			"topology.yml:3:10: TG314 package must be small as in the folder of the topology, got other"},
		{"left out by a tag", "-- b.go --\n//go:build other\n\npackage other\n", ""},
		{"left out by a name", "-- b_plan9.go --\npackage other\n", ""},
		{"tests", "-- b_test.go --\npackage small\n\ntype Feed struct{}\n", ""},
		{"an empty file", "-- b.go --\n", "b.go:1:1: TG310 this Go file does not parse: expected 'package', found 'EOF'"},
		{"a line directive", "-- b.go --\n//line /etc/passwd:1\npackage other\n", "b.go:2:9: TG314 a folder must hold one package, got small (a.go) and other"},
		{"cgo", "-- b.go --\npackage small\n\nimport \"C\"\n\ntype x C.int\n", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOTOOLCHAIN", "local")
			r := small(t, newFolder(t), c.files, Options{})
			if got := said(r.Findings); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if ok := c.want == ""; ok != (r.plan() != nil && r.plan().Bound) || ok != r.PortsReady {
				t.Errorf("ports %t, plan %+v", r.PortsReady, r.plan())
			}
		})
	}
}

func TestAnotherPackage(t *testing.T) {
	topology := strings.Replace(smallTopology, "name: small", "name: small\npackage: other", 1)
	r := small(t, newFolder(t), "-- topology.yml --\n"+topology, Options{})
	if len(r.Findings) != 1 || r.Findings[0].Suggestion != `write "package: small", or remove it` {
		t.Errorf("%+v", r.Findings)
	}
}

func TestOutsideModules(t *testing.T) {
	r := small(t, memdir.Quick(t), "", Options{})
	const want = "topology.yml:0:0: TG314 no go.mod in the folder of the topology or above it"
	if got := said(r.Findings); got != want || r.PortsReady {
		t.Errorf("got %s", got)
	}
	if got := r.Findings[0].Suggestion; got != "run go mod init example.com/small" {
		t.Errorf("suggestion %q", got)
	}
	if v, err := r.Verify(t.Context(), nil); len(v.Own)+len(v.User) > 0 || err != nil {
		t.Errorf("verified %v, %v", v, err)
	}
}

// TestSameFolder checks that two topologies in one folder are refused, because they would
// declare the same names.
func TestSameFolder(t *testing.T) {
	in := writeSmall(t, newFolder(t), "")
	results, err := Bind(t.Context(), []Input{in, in}, Options{Cache: shared.cache})
	if err != nil {
		t.Fatal(err)
	}
	if !results[0].plan().Bound || results[1].PortsReady || results[1].plan().Bound {
		t.Error("the first should bind, the second not")
	}
	if got := said(results[1].Findings); !strings.Contains(got, "TG312") {
		t.Error(got)
	}
}

// TestSameFolderByLink checks the same for a folder with two paths.
func TestSameFolderByLink(t *testing.T) {
	dir := newFolder(t)
	in, link := writeSmall(t, dir, ""), filepath.Join(filepath.Dir(dir), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	other := parse(t, txtar.Parse([]byte("-- topology.yml --\n"+strings.Replace(smallTopology, "{feed: {}", "{feed: {}, third: {}", 1)+"  - feed -> third: M\n")))
	results, err := Bind(t.Context(), []Input{in, {Topology: other, Dir: link}}, Options{Cache: shared.cache})
	if err != nil {
		t.Fatal(err)
	}
	if !results[0].plan().Bound || results[1].PortsReady || len(results[1].Findings) != 1 || !strings.Contains(said(results[1].Findings), "TG312") {
		t.Errorf("the first should bind, the second not: %s", said(results[1].Findings))
	}
}

// TestSameFolderOneAfterTheOther checks that generated files of another topology in the folder
// are refused. The topology's own output does not count.
func TestSameFolderOneAfterTheOther(t *testing.T) {
	dir := newFolder(t)
	for source, collides := range map[string]bool{"topology.yml": false, "other.yml": true, "../topology.yml": true} {
		generated := string(header.Seal(source, sha256.Sum256(nil), []byte("package small\n")))
		r := small(t, dir, "-- other_gen.go --\n"+generated, Options{})
		if got := said(r.Findings); strings.Contains(got, "TG312") != collides || collides && !strings.Contains(got, "other_gen.go is generated from "+source) {
			t.Errorf("with a file from %s: %s", source, got)
		}
	}
}

// TestSameOutput checks a package with outputs of another topology under the same names. The
// package's handlers use the types in them, so there must be only one finding.
func TestSameOutput(t *testing.T) {
	dir := newFolder(t)
	generated := "-- topology_gen.go --\n" + string(header.Seal("other.yml", sha256.Sum256(nil), []byte("package small\n")))
	handlers := "-- b.go --\npackage small\n\ntype Other struct{}\n\nfunc (*Other) ReceiveM(m M, out *OtherSender) {}\n"
	if r := small(t, dir, generated, Options{}); !r.plan().Bound {
		t.Errorf("other.yml is not there: topology.yml was called so, and takes its files over, not %s", said(r.Findings))
	}
	r := small(t, dir, generated+handlers+"-- other.yml --\n"+smallTopology, Options{})
	if got := said(r.Findings); len(r.Findings) != 1 || !strings.Contains(got, "topology_gen.go is generated from other.yml") {
		t.Errorf("findings %s", got)
	}
	if r.PortsReady {
		t.Error("nothing should be written")
	}
}

// TestOutputBelow checks an output in a folder below, which may not exist.
func TestOutputBelow(t *testing.T) {
	dir := newFolder(t)
	topology := strings.Replace(smallTopology, "name: small", "name: small\noutput: inner/wiring_gen.go", 1)
	r := small(t, dir, "-- topology.yml --\n"+topology+"-- b.go --\npackage small\n", Options{})
	if !strings.HasSuffix(r.plan().ImportPath, "/small/inner") || r.plan().Output != "wiring_gen.go" || r.plan().PortsFile != "wiring_ports_gen.go" {
		t.Errorf("plan %+v", r.plan())
	}
	if len(r.Findings) != 3 || r.PortsReady {
		t.Errorf("findings %s", said(r.Findings))
	}
	if r.Dir != filepath.Join(dir, "inner") {
		t.Errorf("folder %s", r.Dir)
	}
}

// TestLinks checks that a folder has one import path and one plan, through any link.
func TestLinks(t *testing.T) {
	module := newModule(t)
	dir := filepath.Join(module, "small")
	archive := txtar.Parse([]byte("-- topology.yml --\n" + smallTopology + "-- a.go --\n" + smallGo))
	unpack(t, archive, dir)
	outside := memdir.Quick(t)
	for link, target := range map[string]string{
		filepath.Join(module, "link"):   dir,
		filepath.Join(module, "below"):  outside,
		filepath.Join(outside, "whole"): module,
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Skip(err)
		}
	}
	hash := func(dir string) (importPath string, hash [32]byte) {
		r := locate(token.NewFileSet(), newEnvironment(nil), Input{Topology: parse(t, archive), Dir: dir})
		return r.Outline.ImportPath, plan.Hash(r.Outline)
	}
	_, want := hash(dir)
	for _, c := range []struct{ dir, path string }{
		{dir, "example.com/small"},
		{filepath.Join(module, "link"), "example.com/small"},
		{filepath.Join(outside, "whole", "small"), "example.com/small"},
		{filepath.Join(outside, "whole", "link"), "example.com/small"},
		{filepath.Join(module, "below"), "example.com/below"}, // as the go command names it
		{filepath.Join(module, "below", "whole", "link"), "example.com/small"},
	} {
		path, got := hash(c.dir)
		if path != c.path || path == "example.com/small" && got != want {
			t.Errorf("%s: import path %s, want %s; or the plan differs", c.dir, path, c.path)
		}
	}
}

// TestWorkspace checks a topology that uses declarations of another topology's package in the
// same workspace, although neither package compiles yet.
func TestWorkspace(t *testing.T) {
	dir := newModule(t)
	write(t, filepath.Join(dir, "go.work"), "go 1.26\n\nuse (\n\t.\n\t./other\n)\n")
	write(t, filepath.Join(dir, "other", "go.mod"), "module example.org/other\n\ngo 1.26\n\nrequire github.com/topogen/topogen v0.0.0\n")
	write(t, filepath.Join(dir, "other", "a.go"), smallGo)
	write(t, filepath.Join(dir, "small", "a.go"), `package small

import other "example.org/other"

type Feed = other.Feed

type Sink struct{ *other.Sink }
`)
	other := parse(t, txtar.Parse([]byte("-- topology.yml --\n"+smallTopology)))
	using := parse(t, txtar.Parse([]byte("-- topology.yml --\n"+strings.Replace(smallTopology, "processors", "messages: {M: example.org/other.M}\nprocessors", 1))))
	results, err := Bind(context.Background(), []Input{
		{Topology: other, Dir: filepath.Join(dir, "other")},
		{Topology: using, Dir: filepath.Join(dir, "small")},
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := said(results[0].Findings); got != "" {
		t.Errorf("other: %s", got)
	}
	// other's Feed sends by the sender of other's topology, which this one's is not.
	const want = "topology.yml:4:14: TG303 method Ping(out *small.FeedSender) error of Feed must take its own sender, got *small.FeedSender"
	if got := said(results[1].Findings); got != want {
		t.Errorf("using: got  %s\nwant %s", got, want)
	}
	if got := results[1].plan().Processors[1].Receives[0].Name; got != "ReceiveM" {
		t.Errorf("the promoted handler is %q", got)
	}
	internal := filepath.Join(dir, "topogen", "runtime", "internal")
	if want := []string{
		filepath.Join(dir, "other"), filepath.Join(dir, "small"),
		filepath.Join(internal, "alive"), filepath.Join(internal, "attempt"), filepath.Join(internal, "fencing"), filepath.Join(internal, "hold"), filepath.Join(dir, "topogen", "runtime", "topo"),
	}; !slices.Equal(results[1].Inputs(), want) {
		t.Errorf("folders %v", results[1].Inputs())
	}
}

// TestAbsentPackage checks a folder whose files this build excludes. The package counts as
// excluded if such a file declares a name of the topology. Otherwise, or if there are only
// tests, the package is new.
func TestAbsentPackage(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"left out":  {"-- a.go --\n//go:build other\n\npackage small\n\ntype Feed struct{}\n", "TG314 the build leaves out all Go files of the package: a.go declares package small, but this build leaves it out: its constraint is other"},
		"unrelated": {"-- a.go --\n//go:build other\n\npackage tool\n\ntype Tool struct{}\n", "TG301 type Feed is not declared in package small"},
		"outside":   {"-- a_test.go --\npackage small_test\n\ntype Feed struct{}\n", "TG301 type Feed is not declared in package small"},
		"tests":     {"-- a_test.go --\npackage small\n\ntype Feed struct{}\n", "TG301 type Feed is not declared in package small"},
	} {
		dir := newFolder(t)
		archive := txtar.Parse([]byte("-- topology.yml --\n" + smallTopology + c.file))
		unpack(t, archive, dir)
		results, err := Bind(t.Context(), []Input{{Topology: parse(t, archive), Dir: dir}}, Options{Cache: shared.cache})
		if err != nil {
			t.Fatal(err)
		}
		if got := said(results[0].Findings); !strings.Contains(got, c.want) || strings.Contains(got, "TG314") != strings.Contains(c.want, "TG314") {
			t.Errorf("%s: %s", name, got)
		}
		if suggestion := results[0].Findings[0].Suggestion; strings.Contains(suggestion, "_test.go") != (name == "tests") {
			t.Errorf("%s: suggests %s", name, suggestion)
		}
	}
}

// TestHashIsStable checks that the plan depends only on the topology file and the Go code.
func TestHashIsStable(t *testing.T) {
	dir := newFolder(t)
	r := small(t, dir, "", Options{})
	s := small(t, dir, "-- b.go --\npackage small\n\n// A comment.\n", Options{})
	if plan.Hash(r.plan()) != plan.Hash(s.plan()) {
		t.Error("hashes differ")
	}
}

func TestMessagesNameFilesNearby(t *testing.T) {
	r := small(t, newFolder(t), "-- b.go --\npackage small\n\nfunc (*Sink) ReceiveM(M) {}\n", Options{})
	v := verify(t, r, nil)
	if got, want := said(v.User), "b.go:3:14: TG311 method Sink.ReceiveM already declared at a.go:10:14"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
