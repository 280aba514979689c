package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/rerun"
)

// newBatch makes a module of n packages with topologies t0, t1, …, which share a package
// of messages. It is the working directory.
func newBatch(t *testing.T, n int) {
	t.Helper()
	checkout, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	rerun.WhenCodeChanges(t) // the go command reads the runtime
	t.Chdir(memdir.Quick(t))
	ownCache(t)
	put(t, "go.sum", string(sums))
	put(t, "go.mod", "module example.com/batch\n\ngo 1.26.0\n\nrequire github.com/topogen/topogen v0.0.0\nrequire github.com/cespare/xxhash/v2 v2.3.0\n\n"+
		"replace github.com/topogen/topogen => "+checkout+"\n")
	put(t, "model/model.go", "package model\n\ntype Line struct{ Text string }\n")
	for i := range n {
		name := fmt.Sprintf("t%d", i)
		put(t, name+"/topology.yml", "version: 1\nname: "+name+"\nmessages: {Line: example.com/batch/model.Line}\nprocessors:\n  feed: {}\n  parser: {}\nedges:\n  - feed -> parser: Line\n")
		put(t, name+"/handlers.go", "package "+name+"\n\nimport (\n\t\"example.com/batch/model\"\n\t\"github.com/topogen/topogen/runtime/topo\"\n)\n\n"+
			"type Feed struct{}\n\nfunc (f *Feed) Ping(out *FeedSender) error { return topo.Done }\n\n"+
			"type Parser struct{}\n\nfunc (p *Parser) ReceiveLine(m *model.Line) {}\n\n// Alone has no edges.\ntype Alone struct{}\n")
	}
}

// ownCache gives the test its own cache of topogen, if the system allows it. The cache of
// the go command stays where it is.
func ownCache(t *testing.T) {
	t.Helper()
	built, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(built)))
	t.Setenv("XDG_CACHE_HOME", memdir.Quick(t))
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// edit replaces a part of a file.
func edit(t *testing.T, name, old, with string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%s does not contain %q: %v", name, old, err)
	}
	put(t, name, strings.Replace(string(text), old, with, 1))
}

// runLine runs a command line and returns its exit code and its output.
func runLine(t *testing.T, line string) (code int, out, words string) {
	t.Helper()
	var data, text bytes.Buffer
	code = Run(t.Context(), strings.Fields(line), Streams{Out: &data, Err: &text, Env: os.Environ()})
	return code, data.String(), text.String()
}

func mustBuild(t *testing.T, want int) {
	t.Helper()
	if code, _, words := runLine(t, "build ./..."); code != want {
		t.Fatalf("exit code %d, want %d:\n%s", code, want, words)
	}
}

// stale lists the topologies that a build would compile.
func stale(t *testing.T) (names []string) {
	t.Helper()
	c := newCompilation(&report{lenient: true}, []string{"./..."}, nil)
	c.recall()
	for _, src := range c.sources {
		names = append(names, filepath.Base(src.dir()))
	}
	return names
}

func wantStale(t *testing.T, what string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, stale(t)); d != "" {
		t.Errorf("%s: a build would compile (-want +got)\n%s", what, d)
	}
}

// TestWarningsAreCached: a build with only warnings is cached. The next build prints the
// same warnings as check, which does not use the cache.
func TestWarningsAreCached(t *testing.T) {
	newBatch(t, 2)
	edit(t, "t1/topology.yml", "edges:", "  alone: {}\nedges:")
	mustBuild(t, exitSuccess)
	wantStale(t, "after a build with a warning")
	for _, flags := range []string{"", " --format json", " --format sarif", " --format github", " --strict", " --strict --format json"} {
		wantCode, wantOut, wantWords := runLine(t, "check ./..."+flags)
		if !strings.Contains(wantOut+wantWords, "TG401") {
			t.Fatalf("no warning: %s%s", wantOut, wantWords)
		}
		code, out, words := runLine(t, "build ./..."+flags)
		if code != wantCode || out != wantOut || words != wantWords {
			t.Errorf("build%s exits with %d, want %d, and prints\n%s%s, want\n%s%s", flags, code, wantCode, out, words, wantOut, wantWords)
		}
		wantStale(t, "after build"+flags)
	}
	edit(t, "t1/topology.yml", "  alone: {}\n", "")
	mustBuild(t, exitSuccess)
	if _, _, words := runLine(t, "build ./..."); words != "" {
		t.Errorf("without a warning: %s", words)
	}
}

// TestBatchIsCachedFileByFile: a build compiles the topologies that have changed, and an
// error in one does not keep the others from being recorded.
func TestBatchIsCachedFileByFile(t *testing.T) {
	newBatch(t, 4)
	wantStale(t, "without a record", "t0", "t1", "t2", "t3")
	mustBuild(t, exitSuccess)
	wantStale(t, "after a build")

	edit(t, "t2/handlers.go", "topo.Done", "topo.Idle")
	wantStale(t, "after an edit", "t2")
	if _, _, words := runLine(t, "build ./..."); words != "" {
		t.Errorf("an edit of a function body changed the output: %s", words)
	}
	wantStale(t, "after a build of one")

	edit(t, "t1/handlers.go", "topo.Done", "topo.Dnoe") // a type error
	edit(t, "t2/handlers.go", "topo.Idle", "topo.Done")
	mustBuild(t, exitFindings)
	wantStale(t, "after a type error", "t1")
	edit(t, "t1/handlers.go", "topo.Dnoe", "topo.Done")

	edit(t, "model/model.go", "Text string", "Text, Name string")
	wantStale(t, "after an edit of the package that all import", "t0", "t1", "t2", "t3")
	mustBuild(t, exitSuccess)
	wantStale(t, "after that build")

	edit(t, "t0/topology.yml", "edges:", "pool: {batch: 7}\nedges:")
	if _, _, words := runLine(t, "build ./..."); words != "topogen: wrote t0/topology_gen.go\ntopogen: wrote t0/topology_ports_gen.go\n" {
		t.Errorf("got %s", words)
	}
	edit(t, "t3/handlers.go", "ReceiveLine", "ReceiveLines") // the handler is missing
	edit(t, "t2/topology.yml", "edges:", "pool: {batch: 7}\nedges:")
	mustBuild(t, exitFindings)
	wantStale(t, "after an edit with a missing handler", "t2", "t3")
	for _, name := range []string{"t2", "t3"} {
		if _, err := os.Stat(name + "/topology_gen.go"); err != nil {
			t.Errorf("a valid output file was removed: %v", err)
		}
	}
}

// TestSpread: a topology that reads the output folder of a stale topology is stale, also
// indirectly.
func TestSpread(t *testing.T) {
	writes := func(folders ...string) source { return source{folders: folders} }
	found := func(dirs ...string) cache.Found { return cache.Found{Dirs: dirs} }
	sources := []source{writes("/a"), writes("/b", "/b/gen"), writes("/c"), writes("/d"), writes("/e")}
	records := []cache.Found{found("/a", "/model"), found("/b", "/b/gen", "/a"), found("/c", "/b/gen"), found("/d", "/model"), found("/e")}
	for changed, want := range [][]bool{
		{false, false, false, true, true}, {true, false, false, true, true}, {true, true, false, true, true}, {true, true, true, false, true}, {true, true, true, true, false},
	} {
		fresh := slices.Repeat([]bool{true}, len(sources))
		fresh[changed] = false
		spread(sources, records, fresh)
		if !slices.Equal(fresh, want) {
			t.Errorf("%d has changed: fresh %v, want %v", changed, fresh, want)
		}
	}
}

// TestBatchOfImports: a topology is stale if it imports the package of a stale topology,
// even if no Go file has changed yet.
func TestBatchOfImports(t *testing.T) {
	newBatch(t, 3)
	put(t, "t1/import.go", "package t1\n\nimport _ \"example.com/batch/t0\"\n")
	mustBuild(t, exitSuccess)
	wantStale(t, "after a build")
	edit(t, "t0/topology.yml", "edges:", "pool: {batch: 7}\nedges:")
	wantStale(t, "after an edit of an imported topology", "t0", "t1")
	mustBuild(t, exitSuccess)
	wantStale(t, "after that build")
}

// TestBatchInOneFolder: topologies in one folder, with outputs in different folders, are
// cached separately too.
func TestBatchInOneFolder(t *testing.T) {
	newBatch(t, 3)
	var files []string
	for _, name := range []string{"t0", "t1", "t2"} {
		text, err := os.ReadFile(name + "/topology.yml")
		if err != nil {
			t.Fatal(err)
		}
		put(t, name+".yml", strings.Replace(string(text), "messages:", "output: "+name+"/topology_gen.go\nmessages:", 1))
		files = append(files, name+".yml")
	}
	for want, words := range []string{"topogen: wrote ", "", "topogen: wrote t1/topology_gen.go\ntopogen: wrote t1/topology_ports_gen.go\n"} {
		if want == 2 {
			edit(t, "t1.yml", "edges:", "pool: {batch: 7}\nedges:")
			c := newCompilation(&report{lenient: true}, files, nil)
			if c.recall(); len(c.sources) != 1 {
				t.Errorf("%d would be compiled", len(c.sources))
			}
		}
		if code, _, got := runLine(t, "build "+strings.Join(files, " ")); code != exitSuccess || !strings.HasPrefix(got, words) || want > 0 && got != words {
			t.Errorf("build %d exits with %d: %s", want, code, got)
		}
	}
}
