package cache

import (
	"path/filepath"
	"testing"
	"time"
)

// watched begins a batch, watches the inputs, and has read the topology.
func (p *project) watched(in Inputs) *Batch {
	b := p.start()
	b.Watch(in)
	return b
}

// TestChangedNoticesEveryChange makes one change of each kind after a build has begun. Changed
// must report it, and the build must not be recorded.
func TestChangedNoticesEveryChange(t *testing.T) {
	for name, change := range map[string]func(*project){
		"the topology":              func(p *project) { p.put("topology.yml", "version: 1 # 2\n") },
		"of the same length":        func(p *project) { p.put("topology.yml", "version: 2\n") },
		"a Go file":                 func(p *project) { p.put("handler.go", "package q\n") },
		"a Go file elsewhere":       func(p *project) { p.put("model/model.go", "package nodel\n") },
		"a new Go file":             func(p *project) { p.put("more.go", "package p\n") },
		"a new Go file elsewhere":   func(p *project) { p.put("model/more.go", "package model\n") },
		"a Go file is gone":         func(p *project) { p.remove("handler.go") },
		"go.mod":                    func(p *project) { p.put("go.mod", "module n\n") },
		"a file that was not there": func(p *project) { p.put("go.sum", "\n") },
		"an input is gone":          func(p *project) { p.remove("topology.yml") },
		"an input is a folder":      func(p *project) { p.remove("go.mod"); p.put("go.mod/x", "") },
		"a folder that was not":     func(p *project) { p.put("nothing/x.go", "package nothing\n") },
	} {
		for _, known := range []bool{true, false} { // what the build is going to read
			for _, cached := range []bool{true, false} {
				p := newProject(t)
				p.cache.now = time.Now
				if !cached {
					p.cache = &Cache{}
				}
				var in Inputs
				if known {
					in = p.inputs()
				} else if p.settle(); name == "an input is gone" {
					in.Files = []string{p.path("topology.yml")} // see Watch
				}
				b := p.watched(in)
				change(p)
				if b.Changed(p.inputs()) == "" {
					t.Errorf("%s (known: %v, cached: %v): not noticed", name, known, cached)
				}
				if p.record(b, p.inputs(), nil) {
					t.Errorf("%s (known: %v, cached: %v): recorded", name, known, cached)
				}
			}
		}
	}
}

// TestChangedNeedsAChange checks files that do not count as changed: a file that was changed
// just before the build began, a file that the build writes, and a file that is not an input.
func TestChangedNeedsAChange(t *testing.T) {
	p := newProject(t)
	p.cache.now = time.Now
	p.put("old_gen.go", "package p // old\n")
	b := p.watched(p.inputs())
	p.put("x_gen.go", "package p\n")
	p.remove("old_gen.go")
	p.put("README.md", "text\n")
	p.put(".topogen-1-2-3.tmp", "")
	p.put("model/README.md", "text\n")
	b.Writes(p.path("x_gen.go"), p.path("old_gen.go"))
	if path := b.Changed(p.inputs()); path != "" {
		t.Errorf("%s is taken for changed", path)
	}
	p.put("handler.go", "package p\n") // the same content again
	if path := b.Changed(p.inputs()); path != "" {
		t.Errorf("%s is taken for changed", path)
	}
}

// TestWatchRemembersWhatWasRead checks that a build watches the inputs in the record of an
// earlier build.
func TestWatchRemembersWhatWasRead(t *testing.T) {
	p := newProject(t)
	if !p.record(p.start(), p.inputs(), nil) {
		t.Fatal("not recorded")
	}
	p.cache.now = time.Now
	p.put("model/model.go", "package model // changed just before\n")
	b := p.start()
	if _, fresh := b.Recall(p.path("topology.yml")); fresh {
		t.Error("fresh")
	}
	if path := b.Changed(p.inputs()); path != "" {
		t.Errorf("%s is taken for changed", path)
	}
	p.put("model/model.go", "package model // changed just behind\n")
	if path := b.Changed(p.inputs()); path != p.path("model/model.go") {
		t.Errorf("%q is taken for changed", path)
	}
}

// TestChangedBeforeStart checks a topology that is read before the build begins: its contents
// must still be the same. Otherwise the result for the old contents would be recorded for the
// new ones.
func TestChangedBeforeStart(t *testing.T) {
	p := newProject(t)
	in := p.inputs()
	in.Read = map[string][]byte{p.path("topology.yml"): []byte("version: 0\n")}
	b := p.watched(in)
	if path := b.Changed(in); path != p.path("topology.yml") {
		t.Errorf("%q is taken for changed", path)
	}
	if p.record(b, in, nil) {
		t.Error("it is recorded")
	}
	in.Read[p.path("topology.yml")] = []byte("version: 1\n")
	if path := b.Changed(in); path != "" {
		t.Errorf("%s is taken for changed", path)
	}
	if !p.record(b, in, nil) || !p.fresh() {
		t.Error("it is not recorded")
	}
	p.remove("topology.yml")
	if path := b.Changed(in); path != p.path("topology.yml") {
		t.Errorf("%q is taken for changed", path)
	}
}

// TestChangedFollowsRelativePaths checks that Changed resolves relative paths like Record.
func TestChangedFollowsRelativePaths(t *testing.T) {
	p := newProject(t)
	t.Chdir(p.dir)
	b := p.cache.Start(p.id)
	in := Inputs{Files: []string{"topology.yml"}, Dirs: []string{"."}, Read: map[string][]byte{"topology.yml": []byte("version: 1\n")}}
	b.Watch(in)
	p.put("topology.yml", "version: 2\n")
	if path := b.Changed(in); filepath.Base(path) != "topology.yml" {
		t.Errorf("%q is taken for changed", path)
	}
}
