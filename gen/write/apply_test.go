package write

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/gen/header"
	"github.com/topogen/topogen/internal/test/ordinary"
	"github.com/topogen/topogen/internal/test/speed"
)

func TestApplyBringsEverythingToDisk(t *testing.T) {
	same := sealed("same_gen.go", "package p\n")
	dir := folder(t, map[string]string{
		same.Name: string(same.Body), "mine.go": "package p\n",
		"changed_gen.go": string(sealed("changed_gen.go", "package q\n").Body),
		"old_gen.go":     string(sealed("old_gen.go", "package p\n").Body),
	})
	want := []File{same, sealed("changed_gen.go", "package p\n"), sealed("new_gen.go", "package p\n"), sealed("a/b/deep_gen.go", "package b\n")}
	c := mustPlan(t, dir, want...)
	mustApply(t, c)
	onDisk := bodies(want)
	onDisk["mine.go"] = "package p\n"
	wantTree(t, dir, onDisk)

	for _, f := range c.Outputs() {
		if content, err := os.ReadFile(f.Name); err != nil || string(content) != string(f.Body) {
			t.Errorf("Outputs says %q for %s, on disk is %q, %v", f.Body, f.Name, content, err)
		}
	}
	if again := mustPlan(t, dir, want...); !again.Clean() {
		t.Errorf("a second build would %q", ops(again))
	}
}

func TestApplyLeavesTimesAndModesAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits")
	}
	same, changed := sealed("same_gen.go", "package p\n"), sealed("changed_gen.go", "package p\n")
	dir := folder(t, map[string]string{
		same.Name: strings.ReplaceAll(string(same.Body), "\n", "\r\n"), changed.Name: string(sealed(changed.Name, "package q\n").Body),
	})
	past := time.Unix(1_000_000_000, 0)
	if err := os.Chtimes(filepath.Join(dir, same.Name), past, past); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, changed.Name), 0o440); err != nil {
		t.Fatal(err)
	}
	mustApply(t, mustPlan(t, dir, same, changed, sealed("new_gen.go", "package p\n")))
	for name, want := range map[string]os.FileMode{same.Name: 0o644, changed.Name: 0o440, "new_gen.go": 0o644} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()|0o022 != want|0o022 { // less what the umask of whoever runs this takes away
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
		if name == same.Name && !info.ModTime().Equal(past) {
			t.Error("an unchanged file was touched")
		}
	}
}

func TestApplyWritesAllTopologiesOrNone(t *testing.T) {
	good, bad := folder(t, nil), folder(t, map[string]string{"x_gen.go": "package mine\n"})
	file := sealed("x_gen.go", "package p\n")
	a, findings := Plan(Target{Dir: good, Source: "topology.yml", Files: []File{file}})
	wantCodes(t, findings)
	b, _ := Plan(Target{Dir: bad, Source: "topology.yml", Files: []File{file}})
	wantCodes(t, Apply(t.Context(), nil, a, b), "TG502")
	wantTree(t, good, nil)

	put(t, bad, map[string]string{"x_gen.go": string(sealed("x_gen.go", "package q\n").Body)})
	wantCodes(t, Apply(t.Context(), nil, a, mustPlan(t, bad, file)))
	wantTree(t, good, bodies([]File{file}))
	wantTree(t, bad, bodies([]File{file}))
}

// TestApplyKeptFiles checks that a file that users also edit is written with the others, over
// the contents that Plan has read, and is never removed.
func TestApplyKeptFiles(t *testing.T) {
	output := sealed("topology_gen.go", "package p\n")
	kept := func(body string) File { return File{Name: "topology.wire.yml", Body: []byte(body), Kept: true} }
	dir := folder(t, nil)
	for _, body := range []string{"A.B: 1\n", "A.B: 1\nA.C: 2\n"} {
		mustApply(t, mustPlan(t, dir, output, kept(body)))
		wantTree(t, dir, bodies([]File{output, kept(body)}))
	}
	c := mustPlan(t, dir, output, kept("A.D: 3\n"))
	put(t, dir, map[string]string{"topology.wire.yml": "A.E: 1\n"})
	wantCodes(t, c.applyOne(t.Context()), "TG507")
	mustApply(t, mustPlan(t, dir, output))
	wantTree(t, dir, map[string]string{output.Name: string(output.Body), "topology.wire.yml": "A.E: 1\n"})
}

func TestApplyRefusesTwoTopologiesWithOneOutput(t *testing.T) {
	dir := folder(t, nil)
	a := mustPlan(t, dir, sealed("x_gen.go", "package p\n"))
	b, findings := Plan(Target{Dir: filepath.Join(dir, "."), Source: "other.yml", Files: []File{sealedFrom("other.yml", "x_gen.go", "package p\n")}})
	wantCodes(t, findings)
	wantCodes(t, Apply(t.Context(), nil, a, b), "TG503")
	wantTree(t, dir, nil)

	wantCodes(t, Apply(t.Context(), nil, a, mustPlan(t, dir, sealed("x_gen.go", "package p\n"))))
}

func TestApplyHeedsTheContext(t *testing.T) {
	dir := folder(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantCodes(t, mustPlan(t, dir, sealed("x_gen.go", "package p\n")).applyOne(ctx), "TG503")
	wantTree(t, dir, nil)
}

// TestApplyLooksAgain checks that a file that a user saves between Plan and Apply is not lost.
func TestApplyLooksAgain(t *testing.T) {
	file := sealed("sub/x_gen.go", "package p\n")
	for name, c := range map[string]struct {
		change func(dir string) error
		code   string
	}{
		"written": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "y_gen.go"), []byte("package mine\n"), 0o644)
		}, "TG502"},
		"linked": {func(dir string) error { return os.Symlink("old_gen.go", filepath.Join(dir, "y_gen.go")) }, "TG504"},
		"orphan edited": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "old_gen.go"), append(sealed("old_gen.go", "").Body, "// mine\n"...), 0o644)
		}, "TG502"},
		"orphan taken over": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "old_gen.go"), sealedFrom("other.yml", "old_gen.go", "").Body, 0o644)
		}, "TG502"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"old_gen.go": string(sealed("old_gen.go", "package p\n").Body)})
			changes := mustPlan(t, dir, file, sealed("y_gen.go", "package p\n"))
			if err := c.change(dir); err != nil {
				t.Skip(err)
			}
			before := tree(t, dir)
			wantCodes(t, changes.applyOne(t.Context()), c.code)
			wantTree(t, dir, before)
			if _, err := os.Stat(filepath.Join(dir, "sub")); err == nil {
				t.Error("the folder that was made for nothing is left")
			}
		})
	}
}

func TestApplyReportsReadOnlyFolder(t *testing.T) {
	dir := folder(t, nil)
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	ordinary.Run(t, func() {
		findings := mustPlan(t, dir, sealed("x_gen.go", "package p\n")).applyOne(t.Context())
		wantCodes(t, findings, "TG503")
	})
}

// TestApplyConcurrently runs concurrent builds of the same topology.
func TestApplyConcurrently(t *testing.T) {
	for round := range speed.Pick(t, 5, 20, 200) {
		dir := folder(t, map[string]string{"old_gen.go": string(sealed("old_gen.go", "package p\n").Body)})
		var want []File
		for i := range 4 {
			want = append(want, sealed(fmt.Sprintf("sub%d/f_gen.go", i%2+1), fmt.Sprintf("package p\n\nvar x = %d\n", round)))
			want[i].Name = fmt.Sprintf("sub%d/f%d_gen.go", i%2+1, i)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				c, findings := Plan(Target{Dir: dir, Source: "topology.yml", Files: want})
				if findings = append(findings, c.applyOne(t.Context())...); len(findings) > 0 {
					t.Errorf("round %d: %v", round, findings)
				}
			})
		}
		wg.Wait()
		wantTree(t, dir, bodies(want))
	}
}

// TestApplyConcurrentlyWithChanges runs concurrent builds with different contents. Each file
// must then be complete and from one of the builds. If the files are from two builds, one of
// them must have reported it, and another build must repair the files.
func TestApplyConcurrentlyWithChanges(t *testing.T) {
	dir := folder(t, nil)
	version := func(n int) []File {
		body := fmt.Sprintf("package p\n\nvar version = %d\n", n) + strings.Repeat("// filler\n", 1000*n)
		return []File{sealed("a_gen.go", body), sealed("b_gen.go", body)}
	}
	var wg sync.WaitGroup
	var last [4]bool // whether the last build of a version was overtaken
	for n := range 4 {
		wg.Go(func() {
			for range 10 {
				c, findings := Plan(Target{Dir: dir, Source: "topology.yml", Files: version(n)})
				findings = append(findings, c.applyOne(t.Context())...)
				last[n] = len(findings) == 1 && Overtaken(findings[0])
				if len(findings) > 0 && !last[n] {
					t.Errorf("version %d: %v", n, findings)
				}
			}
		})
	}
	wg.Wait()
	left := tree(t, dir)
	_, first, _ := strings.Cut(left["a_gen.go"], "package")
	_, second, _ := strings.Cut(left["b_gen.go"], "package")
	if first != second && last == [4]bool{} {
		t.Error("files of two builds are side by side, and the last build of each version succeeded")
	}
	for name, content := range tree(t, dir) {
		if header.Inspect([]byte(content)) != header.Ours {
			t.Errorf("%s is not whole", name)
		}
	}
	mustApply(t, mustPlan(t, dir, version(1)...))
	wantTree(t, dir, bodies(version(1)))
}
