package bind

import (
	"context"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
)

// TestTagsOfGoflags compares the files of a package with the files that the go command names, for
// build tags in all notations.
func TestTagsOfGoflags(t *testing.T) {
	dir := newFolder(t)
	in := writeSmall(t, dir, "-- b.go --\n//go:build extra\n\npackage small\n\nfunc (*Sink) Finish() {}\n")
	hasTag := func(flags ...string) bool {
		return slices.Contains(locate(token.NewFileSet(), newEnvironment(nil, flags...), in).root.source.names, filepath.Join(dir, "b.go"))
	}
	check := func(binds bool) {
		t.Helper()
		flags := os.Getenv("GOFLAGS")
		list := exec.Command("go", "list", "-f", "{{.GoFiles}}", ".") // the go command knows
		list.Dir = dir
		out, err := list.CombinedOutput()
		if err != nil {
			t.Fatalf("GOFLAGS=%s: %s", flags, out)
		}
		want := strings.Contains(string(out), "b.go")
		if got := hasTag(); got != want {
			t.Errorf("GOFLAGS=%s: with the file %t, want %t", flags, got, want)
		}
		if !hasTag("-tags=more,extra") {
			t.Errorf("GOFLAGS=%s: -tags does not go before it", flags)
		}
		if !binds {
			return
		}
		for _, options := range []Options{{}, {Flags: []string{"-tags=more,extra"}}} {
			results, err := Bind(t.Context(), []Input{in}, options)
			if err != nil {
				t.Fatal(err)
			}
			if p := results[0].plan(); !p.Bound || (p.Processors[1].Finish != nil) != (want || options.Flags != nil) {
				t.Errorf("GOFLAGS=%s, %s: %s", flags, options.Flags, said(results[0].Findings))
			}
		}
	}
	notations := []string{
		`"-tags='extra'"`, "-mod=mod --tags=extra", "'-tags=more extra'", `"-tags=extra,more" -mod=mod`, "\t'-mod=mod'\n\"-tags=more 'extra'\"",
		"", "-tags=extra,more", `-tags="extra"`, "-tags=extra -tags=more", "-tags=extra,,more", "-tags=",
	}
	for i, flags := range notations[:speed.Pick(t, 5, len(notations), len(notations))] {
		t.Setenv("GOFLAGS", flags)
		check(i < speed.Pick(t, 1, len(notations), len(notations)))
	}
	t.Setenv("GOFLAGS", "")
	write(t, filepath.Join(dir, "env"), "GOFLAGS=-tags=extra\n") // the go command's own file of defaults
	t.Setenv("GOENV", filepath.Join(dir, "env"))
	if check(false); !hasTag() {
		t.Error("the go command's own file of defaults does not count")
	}
}

func TestCanceled(t *testing.T) {
	in := writeSmall(t, newFolder(t), "")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Bind(ctx, []Input{in}, Options{}); err == nil {
		t.Error("no error")
	}
}

// TestCanceledWhileListing ends Bind while the go command lists packages, and checks that no
// files are left behind.
func TestCanceledWhileListing(t *testing.T) {
	in, folder := writeSmall(t, newFolder(t), ""), memdir.Quick(t)
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
	dir := newFolder(t)
	empty := filepath.Join(memdir.Quick(t), "none")
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
			r := small(t, dir, "", Options{Imports: []string{"context", plan.Topo}, Env: append(os.Environ(), setting)})
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
		r := small(t, newFolder(t), "", Options{Env: append(os.Environ(), "GOENV="+file)})
		if got := said(r.Findings); got != want {
			t.Errorf("GOENV=%s: got %s", file, got)
		}
	}
}

// TestSanitizerTags compares the files of a package with the files that the go command lists. The
// package has files with the build tags of sanitizers, and a file of package documentation.
func TestSanitizerTags(t *testing.T) {
	needsCgo(t)
	dir := newFolder(t)
	in := writeSmall(t, dir, "-- race.go --\n//go:build race\n\npackage small\n-- plain.go --\n//go:build !race && !asan\n\npackage small\n"+
		"-- asan.go --\n//go:build asan\n\npackage small\n-- doc.go --\npackage documentation\n")
	all := []string{"-race", "--race=true", "-race=0", "-race -race=false", "-tags=race -race=false", "-asan", "-race=false -asan=1", ""}
	for _, flags := range all[:speed.Pick(t, 3, len(all), len(all))] {
		t.Setenv("GOFLAGS", flags)
		list := exec.Command("go", "list", "-f", "{{range .GoFiles}}{{.}} {{end}}", ".")
		list.Dir = dir
		out, err := list.CombinedOutput()
		if err != nil {
			t.Fatalf("GOFLAGS=%s: %s", flags, out)
		}
		r := locate(token.NewFileSet(), newEnvironment(nil), in)
		if r.root == nil {
			t.Fatal(said(r.reporter.findings))
		}
		var got []string
		for _, name := range r.root.source.names {
			got = append(got, filepath.Base(name))
		}
		if want := strings.Fields(string(out)); !slices.Equal(got, want) {
			t.Errorf("GOFLAGS=%s: %v, want %v", flags, got, want)
		}
	}
	t.Setenv("GOFLAGS", "")
	if r := small(t, dir, "", Options{}); len(r.Findings) > 0 {
		t.Error(said(r.Findings))
	}
	e := &excludedFile{name: "a.go", text: []byte("//go:build race\n\npackage small\n")}
	if got := e.remedy(); got != "set GOFLAGS=-race" {
		t.Errorf("remedy %q", got)
	}
}
