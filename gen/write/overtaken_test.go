package write

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestInputsChange checks that a build reports a changed input, and writes nothing if the
// change is before the first rename.
func TestInputsChange(t *testing.T) {
	for calls, name := range []string{"before the first rename", "after the last rename"} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"topology.yml": ""})
			asked := 0
			c, findings := Plan(Target{
				Dir: dir, Source: "topology.yml", Files: []File{sealed("a_gen.go", "package p\n"), sealed("sub/b_gen.go", "package sub\n")},
			})
			wantCodes(t, findings)
			findings = Apply(t.Context(), func() string {
				if asked++; asked > calls {
					return filepath.Join(dir, "topology.yml")
				}
				return ""
			}, c)
			wantCodes(t, findings, "TG507")
			if !Overtaken(findings[0]) || findings[0].File != filepath.Join(dir, "topology.yml") {
				t.Errorf("%+v", findings[0])
			}
			if written := calls > 0; c.Applied() != written || asked != calls+1 {
				t.Errorf("applied: %v, asked %d times", c.Applied(), asked)
			}
			want := map[string]string{"topology.yml": ""}
			if calls > 0 {
				maps.Copy(want, bodies(c.target.Files))
			}
			wantTree(t, dir, want)
			if _, err := os.Stat(filepath.Join(dir, "sub")); (err == nil) != (calls > 0) {
				t.Errorf("a folder without files is left: %v", err)
			}
		})
	}
}

// TestInterleavedBuilds runs a whole build of another state at each step of a build. Afterwards
// all files on disk must be from one build, or the build must report that it was overtaken.
func TestInterleavedBuilds(t *testing.T) {
	version := func(n int) []File {
		body := fmt.Sprintf("package p\n\nvar version = %d\n", n)
		files := []File{sealed("topology_gen.go", body), sealed("topology_ports_gen.go", body)}
		if n == 2 { // another output, which is an orphan to the other versions
			files = append(files, sealed("more_gen.go", body))
		}
		return files
	}
	for _, pair := range [][2]int{{0, 1}, {0, 2}, {2, 1}} {
		overtakes, successes := 0, 0
		for n, last := int64(1), int64(1); n <= last; n += speed.Pick[int64](t, 3, 1, 1) {
			dir := folder(t, bodies(version(3)))
			ours, theirs := mustPlan(t, dir, version(pair[0])...), process(2)
			f := &faults{failAt: n, beside: func() {
				theirs.alive = func(int) bool { return true }
				wantCodes(t, apply(t.Context(), openRoot, theirs, nil, []*Changes{mustPlan(t, dir, version(pair[1])...)}))
			}}
			findings := apply(t.Context(), f.open, process(1), nil, []*Changes{ours})
			last = f.calls.Load()
			left := tree(t, dir)
			switch {
			case len(findings) > 0 && !Overtaken(findings[0]):
				t.Errorf("step %d: %v", n, findings)
			case len(findings) > 0:
				overtakes++
			case !maps.Equal(left, bodies(version(pair[0]))) && !maps.Equal(left, bodies(version(pair[1]))):
				t.Errorf("step %d of %d: the build succeeds, and these are on disk: %q", n, last, slices.Sorted(maps.Keys(left)))
			default:
				successes++
			}
		}
		if overtakes == 0 || successes == 0 {
			t.Errorf("%v: %d builds were overtaken, %d were not", pair, overtakes, successes)
		}
	}
}
