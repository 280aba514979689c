package bind

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/topogen/topogen/gen/plan"
)

func TestTagsOfGoflags(t *testing.T) {
	dir := filepath.Join(newModule(t), "small")
	more := "-- b.go --\n//go:build extra\n\npackage small\n\nfunc (*Sink) Finish() {}\n"
	for _, flags := range []string{
		"", "-tags=extra,more", "-mod=mod --tags=extra", "'-tags=more extra'", `"-tags=extra,more" -mod=mod`, "\t'-mod=mod'\n\"-tags=more 'extra'\"",
		`"-tags='extra'"`, `-tags="extra"`, "-tags=extra -tags=more", "-tags=extra,,more", "-tags=",
	} {
		t.Setenv("GOFLAGS", flags)
		list := exec.Command("go", "list", "-f", "{{.GoFiles}}", ".") // the go command knows
		list.Dir = dir
		small(t, dir, more, Options{}) // writes the files
		out, err := list.CombinedOutput()
		if err != nil {
			t.Fatalf("GOFLAGS=%s: %s", flags, out)
		}
		r := small(t, dir, more, Options{})
		if got, want := r.plan().Processors[1].Finish != nil, strings.Contains(string(out), "b.go"); got != want || !r.plan().Bound {
			t.Errorf("GOFLAGS=%s: Finish %t, want %t: %s", flags, got, want, said(r.Findings))
		}
		if r := small(t, dir, more, Options{Flags: []string{"-tags=more,extra"}}); r.plan().Processors[1].Finish == nil {
			t.Errorf("GOFLAGS=%s: -tags does not go before it", flags)
		}
	}
	t.Setenv("GOFLAGS", "")
	write(t, filepath.Join(dir, "env"), "GOFLAGS=-tags=extra\n")
	t.Setenv("GOENV", filepath.Join(dir, "env"))
	if r := small(t, dir, more, Options{}); r.plan().Processors[1].Finish == nil {
		t.Error("the go command's own file of defaults does not count")
	}
}

func TestCanceled(t *testing.T) {
	dir := filepath.Join(newModule(t), "small")
	small(t, dir, "", Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	in := Input{Topology: parse(t, txtar.Parse([]byte("-- topology.yml --\n"+smallTopology))), Dir: dir}
	if _, err := Bind(ctx, []Input{in}, Options{}); err == nil {
		t.Error("no error")
	}
}

// TestCanceledWhileListing ends Bind while the go command lists packages, and checks that no
// files are left behind.
func TestCanceledWhileListing(t *testing.T) {
	dir, folder := filepath.Join(newModule(t), "small"), t.TempDir()
	small(t, dir, "", Options{})
	in := Input{Topology: parse(t, txtar.Parse([]byte("-- topology.yml --\n"+smallTopology))), Dir: dir}
	options := Options{Imports: []string{"context", plan.Topo}, Env: append(os.Environ(), "GOTMPDIR="+folder)}
	for {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			for ctx.Err() == nil {
				if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
					return
				}
			}
		}()
		_, err := Bind(ctx, []Input{in}, options)
		cancel()
		if err == nil { // it was faster
			continue
		}
		if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
			t.Errorf("left behind: %v, %v", entries, err)
		}
		return
	}
}

// TestBrokenGoCommand checks that a finding has the message of a go command that cannot work.
func TestBrokenGoCommand(t *testing.T) {
	module := newModule(t)
	empty := filepath.Join(t.TempDir(), "none")
	for setting, want := range map[string]string{
		"GOCACHE=relative":      "GOCACHE is not an absolute path",
		"GOCACHE=" + os.DevNull: "failed to initialize build cache at " + os.DevNull,
		"GOWORK=" + empty:       "go: reading go.work: open ",
		"GOFLAGS=-bogus":        "go: parsing $GOFLAGS: unknown flag -bogus",
		"GOTMPDIR=" + empty:     "creating work dir: stat " + empty,
		"GOTOOLCHAIN=bogus":     `go: invalid GOTOOLCHAIN "bogus"`,
		"GOOS=bogus":            "unsupported GOOS/GOARCH pair bogus/",
		"GOROOT=" + empty:       "cannot find GOROOT directory: " + empty,
	} {
		t.Run(setting, func(t *testing.T) {
			r := small(t, filepath.Join(module, "small"), "", Options{Imports: []string{"context", plan.Topo}, Env: append(os.Environ(), setting)})
			got := said(r.Findings)
			if prefix := "topology.yml:2:7: TG314 the go command cannot list packages: "; !strings.HasPrefix(got, prefix) || !strings.Contains(got, want) ||
				strings.Contains(got, "exit status") || len(r.Findings) != 1 {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestSettingsWithoutEnd checks that settings files without an end are not read, and that the
// go command does not get them.
func TestSettingsWithoutEnd(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no /dev/zero")
	}
	for file, want := range map[string]string{
		"/dev/zero": "topology.yml:0:0: TG314 cannot read the settings of the go command from GOENV: zero is not a regular file",
		os.DevNull:  "",
		"off":       "",
	} {
		r := small(t, filepath.Join(newModule(t), "small"), "", Options{Env: append(os.Environ(), "GOENV="+file)})
		if got := said(r.Findings); got != want {
			t.Errorf("GOENV=%s: got %s", file, got)
		}
	}
}

// A message names files as the finding does: no path of this machine.
