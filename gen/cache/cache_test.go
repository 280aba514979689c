package cache

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
)

// project is a small package with a topology, and a cache whose clock is well
// after everything that the test has written.
type project struct {
	t     testing.TB
	dir   string
	cache *Cache
	id    Identity
}

func newProject(t testing.TB) *project {
	p := &project{t: t, dir: memdir.Quick(t), id: Identity{known: true}}
	p.cache = Open(filepath.Join(memdir.Quick(t), "made", "when", "needed"))
	p.cache.now = func() time.Time { return time.Now().Add(time.Minute) }
	p.put("topology.yml", "version: 1\n")
	p.put("go.mod", "module m\n")
	p.put("handler.go", "package p\n")
	p.put("model/model.go", "package model\n")
	return p
}

func (p *project) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

func (p *project) put(name, content string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) remove(name string) {
	p.t.Helper()
	if err := os.Remove(p.path(name)); err != nil {
		p.t.Fatal(err)
	}
}

// start begins a batch that may write into the project's folder.
func (p *project) start() *Batch {
	b := p.cache.Start(p.id)
	b.Watch(Inputs{Dirs: []string{p.dir}})
	return b
}

func (p *project) fresh() bool {
	_, fresh := p.cache.Start(p.id).Recall(p.path("topology.yml"))
	return fresh
}

// record records one build.
func (p *project) record(b *Batch, in Inputs, outputs []Output) bool {
	return b.Record(Build{Key: p.path("topology.yml"), Inputs: in, Outputs: outputs}) == 1
}

func (p *project) inputs() Inputs {
	return Inputs{
		Files: []string{p.path("topology.yml"), p.path("go.mod"), p.path("go.sum"), p.path("go.work")},
		Dirs:  []string{p.dir, p.path("model"), p.path("nothing")},
	}
}

func (p *project) outputs() []Output {
	return []Output{{Path: p.path("topology_gen.go"), Body: []byte("package p // generated\n")}}
}

// build is a whole build: its outputs, then its record.
func (p *project) build() bool {
	b := p.start()
	for _, out := range p.outputs() {
		if old, err := os.ReadFile(out.Path); err != nil || !bytes.Equal(old, out.Body) {
			if err := os.WriteFile(out.Path, out.Body, 0o644); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	return p.record(b, p.inputs(), p.outputs())
}

func (p *project) mustBuild() {
	p.t.Helper()
	if !p.build() {
		p.t.Fatal("the build was not recorded")
	}
	if !p.fresh() {
		p.t.Fatal("not fresh right after the build")
	}
}

func TestFreshNoticesEveryChange(t *testing.T) {
	for name, change := range map[string]func(*project){
		"topology edited":            func(p *project) { p.put("topology.yml", "version: 2\n") },
		"handler edited, same size":  func(p *project) { p.put("handler.go", "package q\n") },
		"handler longer":             func(p *project) { p.put("handler.go", "package p\n\n") },
		"message type edited":        func(p *project) { p.put("model/model.go", "package modem\n") },
		"new file":                   func(p *project) { p.put("new.go", "package p\n") },
		"new file in another folder": func(p *project) { p.put("model/new.go", "package model\n") },
		"new folder appears":         func(p *project) { p.put("nothing/new.go", "package nothing\n") },
		"file deleted":               func(p *project) { p.remove("handler.go") },
		"file becomes a folder":      func(p *project) { p.remove("handler.go"); p.put("handler.go/x", "") },
		"topology deleted":           func(p *project) { p.remove("topology.yml") },
		"go.mod edited":              func(p *project) { p.put("go.mod", "module n\n") },
		"go.sum appears":             func(p *project) { p.put("go.sum", "") },
		"go.work appears":            func(p *project) { p.put("go.work", "") },
		"output edited":              func(p *project) { p.put("topology_gen.go", "package p // generatee\n") },
		"output deleted":             func(p *project) { p.remove("topology_gen.go") },
		"other generator":            func(p *project) { p.id.sum[0]++ },
		"unknown generator":          func(p *project) { p.id = Identity{} },
		"cache deleted":              func(p *project) { p.cache.dir += "-gone" },
		"record of another key": func(p *project) {
			if err := os.Rename(p.cache.file(p.path("topology.yml")), p.cache.file("other")); err != nil {
				p.t.Fatal(err)
			}
			if _, fresh := p.cache.Start(p.id).Recall("other"); fresh {
				p.t.Error("the record of one key makes another fresh")
			}
		},
	} {
		p := newProject(t)
		p.mustBuild()
		change(p)
		if p.fresh() {
			t.Errorf("%s: still fresh", name)
		}
	}
}

func TestFreshIsNotDisturbed(t *testing.T) {
	for name, change := range map[string]func(*project){
		"nothing":       func(*project) {},
		"touched":       func(p *project) { p.put("handler.go", "package p\n") },
		"other file":    func(p *project) { p.put("notes.txt", "") },
		"editor's lock": func(p *project) { p.put(".#handler.go", ""); p.put("_old.go", "") },
		"folder below":  func(p *project) { p.put("sub/x.go", "") },
	} {
		p := newProject(t)
		p.mustBuild()
		change(p)
		if !p.fresh() {
			t.Errorf("%s: not fresh any more", name)
		}
	}
}

func TestFreshRefusesLinkedOutput(t *testing.T) {
	p := newProject(t)
	p.mustBuild()
	if err := os.Rename(p.path("topology_gen.go"), p.path("real.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.txt", p.path("topology_gen.go")); err != nil {
		t.Skip(err)
	}
	if p.fresh() {
		t.Error("an output that became a symbolic link counts as fresh")
	}
}

func TestFreshNoticesTimesSetBack(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("no change time")
	}
	p := newProject(t)
	p.mustBuild()
	info, err := os.Stat(p.path("handler.go"))
	if err != nil {
		t.Fatal(err)
	}
	p.put("handler.go", "package q\n")
	if err := os.Chtimes(p.path("handler.go"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if p.fresh() {
		t.Error("a change with its modification time set back is not noticed")
	}
}

func TestRecordRefusesWhatChangedMeanwhile(t *testing.T) {
	type change struct {
		do       func(*project)
		recorded bool
	}
	changes := map[string]change{
		"nothing":            {func(*project) {}, true},
		"output written":     {func(p *project) { p.put("topology_gen.go", string(p.outputs()[0].Body)) }, true},
		"input edited":       {func(p *project) { p.put("handler.go", "package q\n") }, false},
		"input made":         {func(p *project) { p.put("go.sum", "") }, false},
		"file made":          {func(p *project) { p.put("new.go", "package p\n") }, false},
		"file deleted":       {func(p *project) { p.remove("handler.go") }, false},
		"elsewhere deleted":  {func(p *project) { p.remove("model/model.go") }, false},
		"output edited":      {func(p *project) { p.put("topology_gen.go", "package q // generated\n") }, false},
		"output deleted":     {func(p *project) { p.remove("topology_gen.go") }, false},
		"output is a folder": {func(p *project) { p.remove("topology_gen.go"); p.put("topology_gen.go/x", "") }, false},
	}
	projects := map[string]*project{}
	for name := range changes {
		p := newProject(t)
		p.put("topology_gen.go", string(p.outputs()[0].Body))
		projects[name] = p
	}
	for _, p := range projects {
		p.settle()
	}
	for name, c := range changes {
		p := projects[name]
		b := p.start()
		b.started = time.Now() // the real clock, which the change comes after
		c.do(p)
		if got := p.record(b, p.inputs(), p.outputs()); got != c.recorded {
			t.Errorf("%s: recorded is %v", name, got)
		}
	}
}

// settle returns once everything in the project counts as older than now.
func (p *project) settle() {
	p.t.Helper()
	for _, name := range []string{".", "topology.yml", "go.mod", "handler.go", "model", "model/model.go"} {
		e, ok := observe(p.path(name), false, time.Now())
		if !ok {
			p.t.Fatal(name)
		}
		for e.changedSince(time.Now()) {
			time.Sleep(time.Millisecond)
		}
	}
}

// TestRacyEntriesAreRead checks two changes within the resolution of a clock, which only the
// contents distinguish.
func TestRacyEntriesAreRead(t *testing.T) {
	p := newProject(t)
	p.cache.now = time.Now
	e, ok := observe(p.path("handler.go"), false, time.Now().Add(-racyWindow))
	if !ok || !e.Racy {
		t.Fatalf("a file that has just been written is not racy: %+v", e)
	}
	p.put("handler.go", "package q\n")
	_, now, err := examine(p.path("handler.go"), false)
	if err != nil {
		t.Fatal(err)
	}
	e.Stat = now
	old := &seen{entry: entry{Path: e.Path, Kind: regular, Stat: now}}
	if same, _ := old.compare(&e); same {
		t.Error("a racy entry was believed without reading the file")
	}
	e.Racy = false
	if same, _ := old.compare(&e); !same {
		t.Error("a file with the same times was read, which costs too much")
	}
}

func TestFreshLearnsNewTimes(t *testing.T) {
	p := newProject(t)
	p.mustBuild()
	p.put("handler.go", "package p\n") // touched
	if !p.fresh() {
		t.Fatal("not fresh")
	}
	r, ok := p.cache.load(p.path("topology.yml"))
	if !ok {
		t.Fatal("no record")
	}
	for _, e := range append(r.Inputs, r.Outputs...) {
		if _, s, err := examine(e.Path, true); err != nil || e.Kind == regular && s != e.Stat || e.Racy {
			t.Errorf("the record has not learned about %s: %+v", e.Path, e)
		}
	}
}

func TestOutputsOfOthersInTheFolder(t *testing.T) {
	p := newProject(t)
	b := p.start()
	p.put("topology_gen.go", "1")
	p.put("other_gen.go", "2")
	outputs := []Output{{p.path("topology_gen.go"), []byte("1")}, {p.path("other_gen.go"), []byte("2")}}
	if p.record(b, p.inputs(), outputs[:1]) {
		t.Error("recorded although a file appeared that is not an output")
	}
	if !p.record(b, p.inputs(), outputs) {
		t.Error("not recorded although all outputs are named")
	}
}

func TestUnusableFolderIsNoCache(t *testing.T) {
	p := newProject(t)
	p.put("file", "")
	for _, dir := range []string{p.path("file"), p.path("file/below"), "\x00"} {
		p.cache.dir = dir
		if p.build() || p.fresh() {
			t.Errorf("%q serves as a cache", dir)
		}
	}
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData", "home"} {
		t.Setenv(name, "")
	}
	for _, c := range []*Cache{Open(""), new(Cache)} {
		if p.cache = c; p.build() || p.fresh() {
			t.Error("a cache without a folder remembers")
		}
	}
}

func TestSeveralAtOnce(t *testing.T) {
	p := newProject(t)
	p.mustBuild()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if !p.record(p.start(), p.inputs(), p.outputs()) || !p.fresh() {
					t.Error("not fresh while others record the same")
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkFresh is a topology of 100 processors, a file each, two outputs.
func BenchmarkFresh(b *testing.B) {
	bench := func(racy bool) func(*testing.B) {
		return func(b *testing.B) {
			p := newProject(b)
			if racy {
				p.cache.now = time.Now
			}
			filler := bytes.Repeat([]byte("// filler\n"), 400)
			for i := range 100 {
				p.put(fmt.Sprintf("processor%d.go", i), string(filler))
			}
			body := bytes.Repeat(filler, 100)
			p.put("topology_gen.go", string(body))
			p.put("topology_ports_gen.go", string(body))
			outputs := []Output{{p.path("topology_gen.go"), body}, {p.path("topology_ports_gen.go"), body}}
			p.id = Identify()
			build := p.start()
			build.started = time.Now().Add(time.Minute)
			if !p.record(build, p.inputs(), outputs) {
				b.Fatal("not recorded")
			}
			for b.Loop() {
				p.id = Identify()
				if !p.fresh() {
					b.Fatal("not fresh")
				}
			}
		}
	}
	b.Run("finalState", bench(false))
	b.Run("just-written", bench(true))
}
