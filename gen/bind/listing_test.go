package bind

import (
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/tools/go/packages"

	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
)

// listed lists paths in dir, with the go command or from the cache.
func listed(t *testing.T, c *cache.Cache, dir string, paths ...string) (l *loader, remembered bool) {
	t.Helper()
	l = newLoader(token.NewFileSet(), newEnvironment(nil), dir)
	l.cache = c
	if l.remember(paths).recall() {
		return l, true
	}
	if err := l.list(t.Context(), paths); err != nil {
		t.Fatal(err)
	}
	return l, false
}

// settled lists until the answer comes from the cache. Recent changes prevent caching.
func settled(t *testing.T, c *cache.Cache, dir string, paths ...string) *loader {
	t.Helper()
	for range 20 {
		if l, ok := listed(t, c, dir, paths...); ok {
			return l
		}
	}
	t.Fatal("the listing is not remembered")
	return nil
}

// TestListingsAreRemembered compares cached answers with the go command, and changes
// everything on which an answer may depend.
func TestListingsAreRemembered(t *testing.T) {
	speed.Landing(t)
	const topo = "github.com/topogen/topogen/runtime/topo"
	paths := []string{"context", "example.com/lib", topo, "net/http"} // sorted
	for name, change := range map[string]func(dir string, l *loader){
		"nothing": nil,
		"a file of a dependency": func(dir string, _ *loader) {
			write(t, filepath.Join(dir, "lib", "lib.go"), "package lib\n\ntype U int\n")
		},
		"one more": func(dir string, _ *loader) {
			write(t, filepath.Join(dir, "lib", "more.go"), "package lib\n\ntype U int\n")
		},
		"one of another module": func(dir string, _ *loader) {
			write(t, filepath.Join(dir, "topogen", "runtime", "topo", "more.go"), "package topo\n")
		},
		"go.mod":                   func(dir string, _ *loader) { add(t, filepath.Join(dir, "go.mod")) },
		"go.mod of another module": func(dir string, _ *loader) { add(t, filepath.Join(dir, "topogen", "go.mod")) },
		"go.mod of a dependency":   func(dir string, _ *loader) { write(t, filepath.Join(dir, "lib", "go.mod"), "module example.com/lib\n") },
		"go.mod above a dependency": func(dir string, _ *loader) {
			write(t, filepath.Join(dir, "deep", "go.mod"), "module example.com/deep\n")
		},
		"a folder for vendored code": func(dir string, _ *loader) {
			if err := os.Mkdir(filepath.Join(dir, "vendor"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
		"a package is a root now":   func(_ string, l *loader) { l.roots["example.com/deep/er"] = &root{} },
		"a workspace":               func(dir string, _ *loader) { write(t, filepath.Join(dir, "go.work"), "go 1.26\n\nuse .\n") },
		"export data is not there":  func(_ string, l *loader) { l.listed[topo].ExportFile += "-none" },
		"flags":                     func(string, *loader) { t.Setenv("GOFLAGS", "-tags=other") },
		"flags that name files too": func(string, *loader) { t.Setenv("GOFLAGS", "-overlay=other.json") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOFLAGS", "")
			dir, c := newModule(t), cache.Open(memdir.Quick(t))
			write(t, filepath.Join(dir, "lib", "lib.go"), "package lib\n\nimport (\n\t_ \"example.com/deep/er\"\n\t\"net/url\"\n)\n\ntype T url.URL\n")
			write(t, filepath.Join(dir, "deep", "er", "er.go"), "package er\n")
			l := settled(t, c, dir, paths...)
			if change != nil {
				change(dir, l)
				if name == "export data is not there" {
					r := l.remember(paths)
					r.record([]*packages.Package{l.listed[topo]})
				}
				again := newLoader(token.NewFileSet(), newEnvironment(nil), dir)
				again.cache, again.roots = c, l.roots
				if again.remember(paths).recall() {
					t.Error("what was listed before still holds")
				}
				return
			}
			fresh, _ := listed(t, nil, dir, paths...)
			if m := l.listed[topo].Module; m.Dir != filepath.Join(dir, "topogen") {
				t.Errorf("the runtime is in %q", m.Dir)
			}
			compared := cmpopts.IgnoreFields(packages.Package{}, "ID", "Dir", "CompiledGoFiles", "GoFiles", "OtherFiles", "EmbedFiles", "IgnoredFiles", "Imports", "Module")
			for path, want := range fresh.listed {
				got := l.listed[path]
				if got == nil {
					t.Fatalf("%s is not remembered", path)
				}
				if diff := cmp.Diff(want, got, compared, cmpopts.IgnoreUnexported(packages.Package{})); diff != "" {
					t.Errorf("%s: (-listed +remembered)\n%s", path, diff)
				}
				for _, p := range want.Imports {
					if got.Imports[p.PkgPath] == nil {
						t.Errorf("%s imports %s", path, p.PkgPath)
					}
				}
			}
			want, got := fresh.folders(paths...), l.folders(paths...)
			for _, path := range paths {
				p, err := l.Import(path)
				if err != nil || !p.Complete() {
					t.Errorf("%s: %v", path, err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) != 7 {
				t.Errorf("folders: (-listed +remembered)\n%s", diff)
			}
		})
	}
}

// TestVendoredListings edits a vendored file, whose module has a version.
func TestVendoredListings(t *testing.T) {
	dir, c := memdir.Quick(t), cache.Open(t.TempDir())
	file := filepath.Join(dir, "vendor", "example.net", "lib", "lib.go")
	write(t, filepath.Join(dir, "go.mod"), "module example.com\n\ngo 1.26\n\nrequire example.net/lib v1.0.0\n")
	write(t, filepath.Join(dir, "vendor", "modules.txt"), "# example.net/lib v1.0.0\n## explicit; go 1.26\nexample.net/lib\n")
	write(t, file, "package lib\n\ntype T int\n")
	settled(t, c, dir, "example.net/lib")
	write(t, file, "package lib\n\ntype U int\n")
	if _, remembered := listed(t, c, dir, "example.net/lib"); remembered {
		t.Error("what was listed before still holds")
	}
}

// TestListingsWithoutModules checks that answers without modules are not cached, because it is
// unknown which files may change.
func TestListingsWithoutModules(t *testing.T) {
	dir, c := memdir.Quick(t), cache.Open(t.TempDir())
	t.Setenv("GO111MODULE", "off")
	t.Setenv("GOPATH", dir)
	write(t, filepath.Join(dir, "src", "lib", "lib.go"), "package lib\n")
	for range 3 {
		if _, remembered := listed(t, c, dir, "lib"); remembered {
			t.Error("lib is remembered")
		}
	}
}

func add(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(text)+"\n// changed\n")
}

// TestListingsNotRemembered checks answers that are only valid for the moment.
func TestListingsNotRemembered(t *testing.T) {
	dir, c := newModule(t), cache.Open(memdir.Quick(t))
	write(t, filepath.Join(dir, "wrong", "wrong.go"), "package wrong\n\nimport \"example.com/none\"\n\nvar _ = none.X\n")
	write(t, filepath.Join(dir, "lib", "lib.go"), "package lib\n\nimport \"example.com/root\"\n\nvar _ root.T\n")
	write(t, filepath.Join(dir, "root", "root.go"), "package root\n\ntype T int\n")
	write(t, filepath.Join(dir, "asm", "asm.go"), "package asm\n\nfunc F()\n")
	write(t, filepath.Join(dir, "asm", "asm.s"), "TEXT ·F(SB), 4, $0\n\tRET\n") // may include other files
	for _, path := range []string{"example.com/wrong", "example.com/nothing", "example.com/lib", "example.com/asm"} {
		for range 2 {
			l := newLoader(token.NewFileSet(), newEnvironment(nil), dir)
			l.cache = c
			l.roots["example.com/root"] = &root{}
			if l.remember([]string{path}).recall() {
				t.Errorf("%s is remembered", path)
			}
			if err := l.list(t.Context(), []string{path}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
