package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/internal/test/speed"
)

// TestConcurrentBuilds changes the topology and the Go files many times, and starts a build
// after each change. When all builds have ended, the output matches the files, or a build
// has reported that it does not.
func TestConcurrentBuilds(t *testing.T) {
	speed.Landing(t)
	const (
		rounds = 8  // without the check for changed inputs, more than half of the rounds failed
		builds = 20 // at the same time
	)
	rerun.WhenCodeChanges(t)
	bin := filepath.Join(t.TempDir(), "topogen")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := newContested(t)
	for round := range rounds {
		var group sync.WaitGroup
		failed := make([]string, builds)
		for i := range builds {
			p.change(t, round*builds+i, 1+(builds-1-i)*(sizeMax-1)/(builds-1))
			cmd := p.command(bin, "build")
			var messages strings.Builder
			cmd.Stderr = &messages
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			group.Go(func() {
				if err := cmd.Wait(); err != nil {
					failed[i] = fmt.Sprintf("%v\n%s", err, &messages)
				}
			})
		}
		group.Wait()
		reported := strings.Join(failed, "")
		t.Logf("round %d: reported:\n%s", round, reported)
		for _, fresh := range []bool{false, true} { // with the cache, which must be correct too, and without it
			check := p.command(bin, "build", "--check")
			if fresh {
				check.Env = append(check.Env, "XDG_CACHE_HOME="+t.TempDir())
			}
			var messages strings.Builder
			check.Stderr = &messages
			err := check.Run()
			if _, differs := errors.AsType[*exec.ExitError](err); err != nil && !differs {
				t.Fatal(err)
			}
			if err != nil && reported == "" {
				t.Errorf("round %d: all builds succeeded, but the output is stale:\n%s", round, &messages)
			}
		}
		if left, err := filepath.Glob(filepath.Join(p.dir, ".topogen-*")); err != nil || len(left) > 0 {
			t.Errorf("round %d: temporary files remain: %v, %v", round, left, err)
		}
	}
}

// sizeMax is the number of pairs of processors in the largest topology.
const sizeMax = 100

// contested is a package that changes while it is built.
type contested struct {
	dir, cache string
	env        []string
}

func newContested(t *testing.T) *contested {
	t.Helper()
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	p := &contested{dir: t.TempDir(), cache: t.TempDir(), env: os.Environ()}
	for key, value := range goValues(t) { // XDG_CACHE_HOME would also move the cache of the go command
		p.env = append(p.env, key+"="+value)
	}
	p.write(t, "go.sum", string(sums))
	p.write(t, "go.mod", moduleText("example.com/words", checkout))
	return p
}

func (p *contested) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func (p *contested) replace(t *testing.T, name, text string) {
	t.Helper()
	p.write(t, name+".new", text)
	if err := os.Rename(filepath.Join(p.dir, name+".new"), filepath.Join(p.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// change writes the n-th version of the files, whose ports and wiring differ from the
// previous version. A larger topology takes longer to build, so a build that began early
// may end last. The files are replaced, as editors do. A file that is overwritten in place
// is empty for a moment, and a build may report that.
func (p *contested) change(t *testing.T, n, size int) {
	t.Helper()
	var processors, edges strings.Builder
	for i := range size {
		fmt.Fprintf(&processors, "  feed%d: {}\n  parser%[1]d: {}\n", i)
		fmt.Fprintf(&edges, "  - feed%d -> parser%[1]d: {message: Line, capacity: %d}\n", i, n+1)
	}
	p.replace(t, "topology.yml", "version: 1\nname: words\nprocessors:\n"+processors.String()+"edges:\n"+edges.String())
	if n%3 == 0 {
		var code strings.Builder
		code.WriteString("package words\n\nimport \"github.com/topogen/topogen/runtime/topo\"\n\ntype Line struct{ Text string }\n")
		for i := range sizeMax {
			fmt.Fprintf(&code, "\ntype (\n\tFeed%d struct{}\n\tParser%[1]d struct{}\n)\n", i)
			fmt.Fprintf(&code, "\nfunc (*Feed%d) Ping() error { return topo.Done }\n", i)
			fmt.Fprintf(&code, "\nfunc (*Parser%d) ReceiveLine(%s) {}\n", i, []string{"Line", "*Line"}[n/3%2])
		}
		p.replace(t, "words.go", code.String())
	}
}

func (p *contested) command(bin string, args ...string) *exec.Cmd {
	cmd := exec.Command(bin, args...)
	cmd.Dir = p.dir
	cmd.Env = append(slices.Clip(p.env), "XDG_CACHE_HOME="+p.cache)
	return cmd
}
