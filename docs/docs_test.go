// Package docs_test executes the documentation. Each page is a script: its blocks
// of code run in order in a module of their own, and the output of each command is
// compared with the page. See block for the notation.
//
//	TOPOGEN_SPEED=landing go test ./docs
//	TOPOGEN_SPEED=landing go test ./docs -run 'TestPages/docs/tutorial.md' -update
//
// -update writes the current output of the commands into the pages. Read the
// difference before you commit it.
package docs_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/internal/test/speed"
)

var update = flag.Bool("update", false, "write the current output of commands into the pages")

// topogen is the module of the repository.
const topogen = "github.com/topogen/topogen"

var (
	repository string // the root of the checkout
	stubs      string // a folder with stubs of commands, first in the PATH of the scripts
	installed  string // a folder with topogen and topoctl, for pages that do not install them
	goSettings []string
)

// small makes the go command link without symbols and DWARF, which takes a third of the time:
// the pages link about fifty programs.
const small = "-ldflags=-s"

// notRun are commands of the repository that would run this test again.
var notRun = map[string]bool{"go test ./...": true, ".ci/run": true, ".ci/long": true}

// checkedElsewhere are generated pages, whose blocks other packages test.
var checkedElsewhere = map[string]string{
	"docs/reference/topology.md": "package spec generates it from the schema",
}

func init() {
	var err error
	if repository, err = filepath.Abs(".."); err == nil {
		repository, err = filepath.EvalSymlinks(repository)
	}
	if err != nil {
		panic(err)
	}
}

// prepare builds the commands for the pages, and asks for the settings of the go command.
func prepare(t *testing.T) {
	t.Helper()
	stubs, installed = t.TempDir(), t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", small, "-o", installed, "./cmd/topogen", "./cmd/topoctl")
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building programs for the pages: %v\n%s", err, out)
	}
	if err := writeStubs(); err != nil {
		t.Fatal(err)
	}
	names := []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY"}
	values, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range strings.Split(strings.TrimSuffix(string(values), "\n"), "\n") {
		goSettings = append(goSettings, names[i]+"="+value)
	}
	if err := download(); err != nil {
		t.Fatal(err)
	}
}

// download fetches the modules that a project with topogen as a tool needs, unless
// they are in the module cache. The pages then download little: go mod tidy of each needs
// the tests of its dependencies in the versions that the page selects.
func download() error {
	root, err := os.MkdirTemp("", "topogen-docs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	program := "package orders\n" // the imports need all other modules
	for _, name := range []string{"route", "raft"} {
		program += fmt.Sprintf("\nimport _ %q\n", topogen+"/runtime/"+name)
	}
	if err := os.WriteFile(filepath.Join(root, "orders.go"), []byte(program), 0o666); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/orders"},
		{"mod", "edit", "-require=" + topogen + "@v0.0.0", "-replace=" + topogen + "=" + repository, "-tool=" + topogen + "/cmd/topogen"},
		{"mod", "tidy"},
		{"mod", "download", "all"},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOSUMDB=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// writeStubs writes stubs of commands that would need a network or much time. A
// clone becomes a link to this checkout, which may have uncommitted changes. The go
// command gets the real path of the checkout, because its build cache works by
// folder. tail, with which pages wait for the end of a process, looks more often than once
// a second, and does not wait for init, which may be slow to release a process that has ended.
func writeStubs() error {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return err
	}
	tail, err := exec.LookPath("tail")
	if err != nil {
		return err
	}
	for name, script := range map[string]string{
		"git": `[ "$*" = "clone https://MODULE" ] && exec ln -s 'CHECKOUT' topogen
echo "docs_test: git $*?" >&2
exit 1
`,
		"go": `cd -P .
for arg; do
	[ "$arg" = MODULE=../topogen ] && arg=MODULE='CHECKOUT'
	set -- "$@" "$arg"
	shift
done
exec 'GO' "$@"
`,
		"tail": `case $1 in --pid=*)
	pid=${1#--pid=}
	while kill -0 $pid 2>/dev/null && ! grep -q '^State:.Z' /proc/$pid/status 2>/dev/null; do sleep 0.05; done
	exit
esac
exec 'TAIL' "$@"
`,
	} {
		text := "#!/bin/sh\n" + strings.NewReplacer("MODULE", topogen, "CHECKOUT", repository, "GO", goCommand, "TAIL", tail).Replace(script)
		if err := os.WriteFile(filepath.Join(stubs, name), []byte(text), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// environment returns the environment of a new user. It takes only Go's caches and its
// proxy from the user who runs the tests. go test calls vet with all analyzers, as go vet of
// .ci/run does, so that the build cache already has what vet needs of most dependencies.
func (s *script) environment() []string {
	gobin := filepath.Join(s.root, "bin")
	commands := installed
	if s.page.installs() {
		commands = gobin
	}
	return append([]string{
		"PATH=" + strings.Join([]string{stubs, filepath.Join(s.root, "commands"), commands, os.Getenv("PATH")}, string(filepath.ListSeparator)),
		"HOME=" + s.root, "XDG_CACHE_HOME=" + filepath.Join(s.root, "cache"), "XDG_CONFIG_HOME=" + filepath.Join(s.root, "config"),
		"GOBIN=" + gobin, "GOFLAGS=-buildvcs=false -vet=all " + small, "GOSUMDB=off", "GOWORK=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off",
		"LC_ALL=C.UTF-8", "TERM=dumb", "NO_COLOR=1",
	}, goSettings...)
}

// pages parses all pages of the repository.
func pages(t *testing.T) []*page {
	t.Helper()
	var paths []string
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"} {
		paths = append(paths, filepath.Join(repository, name))
	}
	err := filepath.WalkDir(filepath.Join(repository, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var list []*page
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(repository, path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePage(filepath.ToSlash(name), src)
		if err != nil {
			t.Error(err)
			continue
		}
		list = append(list, p)
	}
	return list
}

func TestPages(t *testing.T) {
	speed.Landing(t)
	rerun.WhenCodeChanges(t, "docs", "examples")
	prepare(t)
	list := pages(t)
	// The longest pages start first, so that none runs alone at the end; parallel subtests would
	// start in any order. More pages run at a time than there are CPUs, because pages wait for
	// their processes.
	slices.SortStableFunc(list, func(a, b *page) int { return b.programs() - a.programs() })
	places := make(chan struct{}, 2*runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	defer all.Wait()
	for _, p := range list {
		if len(p.blocks) == 0 || checkedElsewhere[p.path] != "" {
			continue
		}
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			t.Run(p.path, func(t *testing.T) {
				s := &script{T: t, page: p}
				s.run()
			})
		})
	}
}
