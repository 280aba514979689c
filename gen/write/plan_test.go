package write

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/ordinary"
)

func TestPlanCompares(t *testing.T) {
	ports, wiring := sealed("topology_ports_gen.go", "package p\n"), sealed("topology_gen.go", "package p\n\nvar x = 1\n")
	old := sealed("topology_gen.go", "package p\n\nvar x = 0\n")
	orphan := sealed("old_gen.go", "package p\n")
	dir := folder(t, map[string]string{
		ports.Name: string(ports.Body), old.Name: string(old.Body), orphan.Name: string(orphan.Body),
		"other_gen.go": string(sealedFrom("other.yml", "other_gen.go", "package p\n").Body),
		"mine.go":      "package p\n",
		"notes.txt":    string(orphan.Body),
	})
	before := tree(t, dir)
	c := mustPlan(t, dir, wiring, ports, sealed("new_gen.go", "package p\n"))
	wantOps(t, c, "create new_gen.go", "remove old_gen.go", "replace topology_gen.go", "unchanged topology_ports_gen.go")
	if c.Clean() {
		t.Error("clean in spite of differences")
	}
	wantCodes(t, c.Check(), "TG505", "TG505", "TG505")
	wantTree(t, dir, before)
}

func TestPlanFindsNothingToDo(t *testing.T) {
	file := sealed("topology_gen.go", "package p\n")
	for name, content := range map[string]string{
		"lf": string(file.Body), "crlf": strings.ReplaceAll(string(file.Body), "\n", "\r\n"),
	} {
		c := mustPlan(t, folder(t, map[string]string{file.Name: content}), file)
		if !c.Clean() || len(c.Check()) > 0 {
			t.Errorf("%s: %v", name, ops(c))
		}
		if got := c.Outputs(); len(got) != 1 || string(got[0].Body) != content {
			t.Errorf("%s: outputs %+v", name, got)
		}
	}
}

func TestPlanKeepsWhatIsNotWrittenThisTime(t *testing.T) {
	wiring := sealed("topology_gen.go", "package p\n")
	dir := folder(t, map[string]string{wiring.Name: string(wiring.Body)})
	c, findings := Plan(Target{
		Dir: dir, Source: "topology.yml", Keep: []string{wiring.Name, "../x_gen.go"},
		Files: []File{sealed("topology_ports_gen.go", "package p\n")},
	})
	wantCodes(t, findings)
	wantOps(t, c, "create topology_ports_gen.go")
}

func TestPlanRefusesWhatAPersonWrote(t *testing.T) {
	want := sealed("topology_gen.go", "package p\n")
	for name, content := range map[string]string{
		"foreign": "package p\n",
		"empty":   "",
		"edited":  string(sealed("topology_gen.go", "package q\n").Body) + "// mine\n",
	} {
		dir := folder(t, map[string]string{want.Name: content})
		before := tree(t, dir)
		c, findings := Plan(Target{Dir: dir, Source: "topology.yml", Files: []File{want, sealed("new_gen.go", "package p\n")}})
		wantCodes(t, findings, "TG502")
		wantOps(t, c, "create new_gen.go", "refuse topology_gen.go")
		wantCodes(t, c.applyOne(t.Context()), "TG502")
		if c.Clean() {
			t.Errorf("%s: clean", name)
		}
		wantTree(t, dir, before)
	}
}

func TestPlanRefusesEditedOrphan(t *testing.T) {
	dir := folder(t, map[string]string{"old_gen.go": string(sealed("old_gen.go", "package p\n").Body) + "// mine\n"})
	c, findings := Plan(Target{Dir: dir, Source: "topology.yml"})
	wantCodes(t, findings, "TG502")
	wantOps(t, c, "refuse old_gen.go")
}

func TestPlanRefusesNamesThatLeave(t *testing.T) {
	for _, name := range []string{
		"", "..", "../x.go", "a/../../x.go", "/x.go", "./x.go", "a//x.go", `..\x.go`, `C:\x.go`, "x\n.go", "x\x00.go", "a/..", "x.go/",
	} {
		_, findings := Plan(Target{Dir: memdir.Quick(t), Source: "topology.yml", Files: []File{{Name: name}}})
		wantCodes(t, findings, "TG504")
	}
	_, findings := Plan(Target{Dir: memdir.Quick(t), Source: "topology.yml", Files: []File{{Name: "x.txt"}}})
	wantCodes(t, findings, "TG503")
}

func TestPlanRefusesNestedModule(t *testing.T) {
	dir := folder(t, map[string]string{"go.mod": "module m\n", "sub/go.mod": "module n\n"})
	_, findings := Plan(Target{Dir: dir, Source: "topology.yml", Files: []File{sealed("sub/x_gen.go", "package p\n")}})
	wantCodes(t, findings, "TG504")
	_, findings = Plan(Target{Dir: dir, Source: "topology.yml", Files: []File{sealed("sub/deep/x_gen.go", "package p\n")}})
	wantCodes(t, findings, "TG504")
}

func TestPlanRefusesSymbolicLinks(t *testing.T) {
	outside := folder(t, map[string]string{"x_gen.go": string(sealed("x_gen.go", "package q\n").Body)})
	for name, link := range map[string]struct{ output, link, to string }{
		"to a file inside":    {"x_gen.go", "x_gen.go", "inside_gen.go"},
		"to a file outside":   {"x_gen.go", "x_gen.go", filepath.Join(outside, "x_gen.go")},
		"to nothing":          {"x_gen.go", "x_gen.go", "nothing_gen.go"},
		"to a folder inside":  {"sub/x_gen.go", "sub", "real"},
		"to a folder outside": {"sub/x_gen.go", "sub", outside},
	} {
		dir := folder(t, map[string]string{"inside_gen.go": string(sealedFrom("other.yml", "inside_gen.go", "package p\n").Body), "real/keep.txt": ""})
		if err := os.Symlink(link.to, filepath.Join(dir, link.link)); err != nil {
			t.Skip(err)
		}
		before := tree(t, dir)
		c, findings := Plan(Target{Dir: dir, Source: "topology.yml", Files: []File{sealed(link.output, "package p\n")}})
		t.Log(name)
		wantCodes(t, findings, "TG504")
		wantCodes(t, c.applyOne(t.Context()), "TG504")
		wantTree(t, dir, before)
		if err := c.Diff(&strings.Builder{}); err != nil {
			t.Error(err)
		}
	}
}

func TestPlanNeverFollowsLinkedOrphans(t *testing.T) {
	outside := folder(t, map[string]string{"old_gen.go": string(sealed("old_gen.go", "package p\n").Body)})
	dir := memdir.Quick(t)
	if err := os.Symlink(filepath.Join(outside, "old_gen.go"), filepath.Join(dir, "old_gen.go")); err != nil {
		t.Skip(err)
	}
	wantOps(t, mustPlan(t, dir))
}

func TestPlanRefusesWhatIsNoFile(t *testing.T) {
	dir := folder(t, map[string]string{"x_gen.go/keep.txt": "", "file": ""})
	for _, name := range []string{"x_gen.go", "file/y_gen.go"} {
		_, findings := Plan(Target{Dir: dir, Source: "topology.yml", Files: []File{sealed(name, "package p\n")}})
		wantCodes(t, findings, "TG503")
	}
}

func TestPlanTellsTopologiesInOneFolderApart(t *testing.T) {
	theirs := sealedFrom("other.yml", "x_gen.go", "package p\n")
	want := Target{Source: "topology.yml", Files: []File{sealed("x_gen.go", "package q\n")}}

	want.Dir = folder(t, map[string]string{"topology.yml": "", "other.yml": "", "x_gen.go": string(theirs.Body)})
	_, findings := Plan(want)
	wantCodes(t, findings, "TG503")

	// After the other topology was renamed, its output may be replaced.
	want.Dir = folder(t, map[string]string{"topology.yml": "", "x_gen.go": string(theirs.Body)})
	c, findings := Plan(want)
	wantCodes(t, findings)
	wantOps(t, c, "replace x_gen.go")
}

func TestPlanLeavesOutputsOfNestedTopologyAlone(t *testing.T) {
	nested := sealed("topology_gen.go", "package sub\n") // of sub/topology.yml
	orphan := sealed("sub/old_gen.go", "package sub\n")  // of ../topology.yml
	dir := folder(t, map[string]string{"sub/topology_gen.go": string(nested.Body), orphan.Name: string(orphan.Body)})
	c := mustPlan(t, dir, sealed("sub/x_gen.go", "package sub\n"))
	wantOps(t, c, "remove sub/old_gen.go", "create sub/x_gen.go")
}

func TestPlanRefusesTwiceTheSameName(t *testing.T) {
	_, findings := Plan(Target{Dir: memdir.Quick(t), Source: "topology.yml", Files: []File{sealed("x_gen.go", ""), sealed("X_gen.go", "")}})
	wantCodes(t, findings, "TG503")
}

// TestPlanTakesNoSpellingForAnOrphan checks that on a disk that ignores case, a file under its
// old spelling is not removed after the rename. A hard link simulates such a disk.
func TestPlanTakesNoSpellingForAnOrphan(t *testing.T) {
	file := sealed("topology_gen.go", "package p\n")
	dir := folder(t, map[string]string{file.Name: string(file.Body)})
	if err := os.Link(filepath.Join(dir, file.Name), filepath.Join(dir, "Topology_gen.go")); err != nil {
		t.Skip(err)
	}
	wantOps(t, mustPlan(t, dir, file), "unchanged topology_gen.go")
}

// TestPlanTakesNoLinkForAnOrphan checks that a symbolic link is not read, and not removed as an
// orphan.
func TestPlanTakesNoLinkForAnOrphan(t *testing.T) {
	orphan, file := sealed("old_gen.go", "package p\n"), sealed("x_gen.go", "package p\n")
	dir := folder(t, map[string]string{"old.txt": string(orphan.Body)})
	if err := os.Symlink("old.txt", filepath.Join(dir, orphan.Name)); err != nil {
		t.Skip(err)
	}
	wantOps(t, mustPlan(t, dir, file), "create x_gen.go")
}

func TestPlanSaysWhatItCannotRead(t *testing.T) {
	c, findings := Plan(Target{Dir: filepath.Join(memdir.Quick(t), "nothing"), Source: "topology.yml"})
	wantCodes(t, findings, "TG501")
	wantCodes(t, c.applyOne(t.Context()), "TG501")
}

func TestPlanSaysWhichFileItCannotRead(t *testing.T) {
	file := sealed("x_gen.go", "package p\n")
	dir := folder(t, map[string]string{file.Name: ""})
	if err := os.Chmod(filepath.Join(dir, file.Name), 0); err != nil {
		t.Fatal(err)
	}
	ordinary.Run(t, func() {
		_, findings := Plan(Target{Dir: dir, Source: "topology.yml", Files: []File{file}})
		wantCodes(t, findings, "TG501")
	})
}

func TestPlanRefusesWhatIsTooLarge(t *testing.T) {
	file := sealed("x_gen.go", "package p\n")
	dir := folder(t, map[string]string{file.Name: string(file.Body)})
	if err := os.Truncate(filepath.Join(dir, file.Name), FileBytesMax+1); err != nil {
		t.Skip(err)
	}
	_, findings := Plan(Target{Dir: dir, Source: "topology.yml", Files: []File{file}})
	wantCodes(t, findings, "TG502")
}

func TestPlanPanicsOnUnsealedFiles(t *testing.T) {
	for name, body := range map[string][]byte{
		"unsealed":     []byte("package p\n"),
		"wrong source": sealedFrom("other.yml", "x_gen.go", "package p\n").Body,
		"changed":      slices.Concat(sealed("x_gen.go", "package p\n").Body, []byte("// later\n")),
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			Plan(Target{Dir: memdir.Quick(t), Source: "topology.yml", Files: []File{{Name: "x_gen.go", Body: body}}})
		}()
	}
}

func TestPlanRefusesTwins(t *testing.T) {
	want := sealed("Feed.go", "package p\n")
	for name, content := range map[string]string{
		"foreign": "package p\n",
		"other":   string(sealedFrom("other.yml", "feed.go", "package p\n").Body),
	} {
		dir := folder(t, map[string]string{"feed.go": content})
		if _, err := os.Stat(filepath.Join(dir, "FEED.go")); err == nil {
			t.Skip("this disk does not tell cases apart")
		}
		c, findings := Plan(Target{Dir: dir, Source: "topology.yml", Files: []File{want}})
		t.Log(name)
		wantCodes(t, findings, "TG503")
		wantOps(t, c, "refuse Feed.go")
	}
	// The file that was written under the other name is removed.
	dir := folder(t, map[string]string{"feed.go": string(sealed("feed.go", "package p\n").Body)})
	wantOps(t, mustPlan(t, dir, want), "create Feed.go", "remove feed.go")
}
