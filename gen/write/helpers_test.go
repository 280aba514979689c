package write

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/gen/header"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/spec/finding"
)

// sealed returns a file with a valid header, as if generated from topology.yml.
func sealed(name, body string) File { return sealedFrom("topology.yml", name, body) }

func sealedFrom(topology, name, body string) File {
	return File{Name: name, Body: header.Seal(header.SourceOf(name, topology), sha256.Sum256([]byte("plan")), []byte(body))}
}

// folder makes a topology's folder with these files in it.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := memdir.Quick(t)
	put(t, dir, files)
	return dir
}

func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// tree returns all files below dir by slash path.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(file)
		name, _ := filepath.Rel(dir, file)
		files[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func wantTree(t testing.TB, dir string, want map[string]string) {
	t.Helper()
	got := tree(t, dir)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if content, ok := want[name]; !ok {
			t.Errorf("%s is on disk and should not be", name)
		} else if got[name] != content {
			t.Errorf("%s has %q, want %q", name, got[name], content)
		}
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is missing on disk", name)
		}
	}
}

// mustPlan plans files of topology.yml.
func mustPlan(t testing.TB, dir string, files ...File) *Changes {
	t.Helper()
	c, findings := Plan(Target{Dir: dir, Source: "topology.yml", Files: files})
	wantCodes(t, findings)
	return c
}

func mustApply(t testing.TB, c *Changes) {
	t.Helper()
	wantCodes(t, c.applyOne(t.Context()))
}

// wantCodes checks the codes of findings, and that each finding has a message without a full
// stop, a suggestion and a file.
func wantCodes(t testing.TB, findings []finding.Finding, want ...string) {
	t.Helper()
	var got []string
	for _, f := range findings {
		got = append(got, f.Code)
		if f.Message == "" || f.Suggestion == "" || f.File == "" || strings.HasSuffix(f.Message, ".") || f.Severity != finding.Error {
			t.Errorf("finding is not well formed: %+v", f)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("findings %v, want codes %v", findings, want)
	}
}

// ops returns what happens to each file, "create topology_gen.go".
func ops(c *Changes) []string {
	var list []string
	for _, ch := range c.List() {
		list = append(list, string(ch.Op)+" "+ch.Name)
	}
	return list
}

func wantOps(t testing.TB, c *Changes, want ...string) {
	t.Helper()
	if got := ops(c); !slices.Equal(got, want) {
		t.Fatalf("changes %q, want %q", got, want)
	}
}

// applyOne calls Apply for one topology whose inputs do not change.
func (c *Changes) applyOne(ctx context.Context) []finding.Finding { return Apply(ctx, nil, c) }

// Clean reports whether Apply has nothing to do.
func (c *Changes) Clean() bool {
	return len(c.findings) == 0 && !slices.ContainsFunc(c.list, func(ch Change) bool { return ch.Op != Unchanged })
}
