package cache

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
)

func TestIdentityTellsGeneratorsApart(t *testing.T) {
	p := newProject(t)
	p.put("topogen", "one")
	p.put("go/bin/go", "one")
	p.put("env", "GOFLAGS=-mod=mod\n")
	exe, goCommand := p.path("topogen"), p.path("go/bin/go")
	base := []string{"GOENV=" + p.path("env")}
	first := identify(exe, goCommand, base, nil)
	if !first.known {
		t.Fatal("unknown")
	}
	for name, again := range map[string]func() Identity{
		"same":               func() Identity { return identify(exe, goCommand, base, nil) },
		"unrelated variable": func() Identity { return identify(exe, goCommand, append(base, "HOME=/x", "GOOGLE_X=1"), nil) },
		"directive": func() Identity {
			return identify(exe, goCommand, append(base, "GOFILE=x.go", "GOLINE=1", "GOPACKAGE=p", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH), nil)
		},
	} {
		if again() != first {
			t.Errorf("%s: another identity", name)
		}
	}
	seen := []Identity{first}
	for name, other := range map[string]func() Identity{
		"option":        func() Identity { return identify(exe, goCommand, base, []string{"--strict"}) },
		"two options":   func() Identity { return identify(exe, goCommand, base, []string{"--str", "ict"}) },
		"flags":         func() Identity { return identify(exe, goCommand, append(base, "GOFLAGS=-tags=x"), nil) },
		"system":        func() Identity { return identify(exe, goCommand, append(base, "GOOS=plan9"), nil) },
		"root":          func() Identity { return identify(exe, goCommand, append(base, "GOROOT=/x"), nil) },
		"cgo":           func() Identity { return identify(exe, goCommand, append(base, "CGO_ENABLED=0"), nil) },
		"no go command": func() Identity { return identify(exe, "", base, nil) },
		"no env file":   func() Identity { return identify(exe, goCommand, []string{"GOENV=off"}, nil) },
		"env file": func() Identity {
			p.put("env", "GOFLAGS=-mod=vendor\n")
			return identify(exe, goCommand, base, nil)
		},
		"generator": func() Identity {
			p.put("topogen", "longer")
			return identify(exe, goCommand, base, nil)
		},
		"go command": func() Identity {
			p.put("go/bin/go", "longer")
			return identify(exe, goCommand, base, nil)
		},
	} {
		id := other()
		if !id.known || slices.Contains(seen, id) {
			t.Errorf("%s: not told apart", name)
		}
		seen = append(seen, id)
	}
	if id := identify(p.path("missing"), goCommand, base, nil); id.known {
		t.Error("a generator that is not there is known")
	}
	if !Identify().known {
		t.Error("this process has no identity")
	}
}

func TestModuleFiles(t *testing.T) {
	p := newProject(t)
	p.put("go.work", "")
	p.put("a/go.mod", "")
	p.put("a/b/x.go", "")
	got := ModuleFiles(p.path("a/b"), "")
	for _, name := range []string{"a/b/go.mod", "a/b/go.work", "a/go.mod", "a/go.sum", "a/vendor", "a/vendor/modules.txt", "a/go.work", "go.work", "go.work.sum"} {
		if !slices.Contains(got, p.path(name)) {
			t.Errorf("%s is not watched", name)
		}
	}
	if slices.Contains(got, p.path("go.mod")) {
		t.Error("the go.mod above the module counts")
	}
	off := ModuleFiles(p.path("a/b"), "off")
	if slices.Contains(off, p.path("go.work")) || !slices.Contains(off, p.path("a/go.mod")) {
		t.Errorf("GOWORK=off gives %v", off)
	}
	elsewhere := filepath.Join(memdir.Quick(t), "go.work")
	if named := ModuleFiles(p.path("a/b"), elsewhere); !slices.Contains(named, elsewhere) {
		t.Errorf("GOWORK=%s gives %v", elsewhere, named)
	}
	if alone := ModuleFiles(string(os.PathSeparator), ""); len(alone) == 0 {
		t.Error("a folder without a module has nothing to wait for")
	}
}

// TestFilesElsewhere checks that nothing is recorded if GOFLAGS names an overlay.
func TestFilesElsewhere(t *testing.T) {
	p := newProject(t)
	p.put("topogen", "one")
	p.put("env", "GOFLAGS=-overlay=o.json\n")
	exe := p.path("topogen")
	for _, environ := range [][]string{
		{"GOENV=off", "GOFLAGS=-tags=x -overlay=o.json"}, {"GOENV=off", "GOFLAGS=--modfile=alt.mod"}, {"GOENV=" + p.path("env")},
	} {
		if identify(exe, "", environ, nil).known {
			t.Errorf("%q: known", environ)
		}
	}
}
