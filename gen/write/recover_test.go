package write

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/spec/finding"
)

// scenario is a build of two topologies with every kind of operation.
type scenario struct {
	dirs   [2]string
	before [2]map[string]string
	after  [2]map[string]string
}

func newScenario(t testing.TB) *scenario {
	s := &scenario{}
	for i := range s.dirs {
		s.before[i] = map[string]string{
			"mine.go":              "package p\n",
			"topology_gen.go":      string(sealed("topology_gen.go", "package p\n\nvar old = 1\n").Body),
			"topology_same_gen.go": string(sealed("topology_same_gen.go", "package p\n").Body),
			"topology_old_gen.go":  string(sealed("topology_old_gen.go", "package p\n").Body),
		}
		s.after[i] = bodies(s.files())
		s.after[i]["mine.go"] = "package p\n"
		s.dirs[i] = folder(t, s.before[i])
	}
	return s
}

func (s *scenario) files() []File {
	return []File{
		sealed("topology_gen.go", "package p\n\nvar new = 1\n"), sealed("topology_same_gen.go", "package p\n"),
		sealed("topology_ports_gen.go", "package p\n"), sealed("sub/deep_gen.go", "package sub\n"),
	}
}

// build plans on a working disk and applies on a faulty disk, as process pid.
func (s *scenario) build(t testing.TB, f *faults, pid int) []finding.Finding {
	t.Helper()
	return apply(t.Context(), f.open, process(pid), nil, s.plan(t))
}

func (s *scenario) plan(t testing.TB) []*Changes {
	t.Helper()
	var sets []*Changes
	for _, dir := range s.dirs {
		sets = append(sets, mustPlan(t, dir, s.files()...))
	}
	return sets
}

// process is an owner for which all other processes have ended.
func process(pid int) owner {
	o := thisProcess()
	o.pid, o.alive = pid, func(int) bool { return false }
	return o
}

// wantWhole fails unless every file is either old or new.
func (s *scenario) wantWhole(t testing.TB) {
	t.Helper()
	for i, dir := range s.dirs {
		for name, content := range tree(t, dir) {
			if isTemp(name) {
				continue
			}
			old, wasThere := s.before[i][name]
			if content != s.after[i][name] && (!wasThere || content != old) {
				t.Fatalf("%s is neither old nor new: %q", name, content)
			}
		}
	}
}

func isTemp(name string) bool { return strings.HasPrefix(filepath.Base(name), tempPrefix) }

func (s *scenario) wantBefore(t testing.TB) {
	t.Helper()
	for i, dir := range s.dirs {
		got := tree(t, dir)
		for name := range got {
			if isTemp(name) {
				delete(got, name)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(s.before[i]) {
			t.Fatalf("something changed: %v", got)
		}
	}
}

func (s *scenario) wantAfter(t testing.TB) {
	t.Helper()
	for i, dir := range s.dirs {
		wantTree(t, dir, s.after[i])
	}
}

// calls counts the disk calls of a build without faults.
func calls(t testing.TB) int64 {
	s, f := newScenario(t), &faults{}
	wantCodes(t, s.build(t, f, 1))
	s.wantAfter(t)
	return f.calls.Load()
}

// stride is the distance between the tested calls. A quick run skips most of them.
func stride(t testing.TB, all int64) int64 { return speed.Pick(t, 7, all, all) }

func TestApplySurvivesEveryError(t *testing.T) {
	for n, last := int64(1), calls(t); n <= last; n += stride(t, 1) {
		s := newScenario(t)
		f := &faults{failAt: n, once: true, err: syscall.ENOSPC}
		findings := s.build(t, f, 1)
		s.wantWhole(t)
		if len(findings) > 0 {
			checkReport(t, s, findings)
		}
		wantCodes(t, s.build(t, &faults{}, 2))
		s.wantAfter(t)
	}
}

// checkReport checks that a finding describes the state of the disk.
func checkReport(t *testing.T, s *scenario, findings []finding.Finding) {
	t.Helper()
	message := findings[0].Message
	if !slices.Contains([]string{"TG501", "TG503"}, findings[0].Code) || len(findings) > 1 || strings.Contains(message, "no finding should show") {
		t.Fatalf("findings %+v", findings)
	}
	if strings.Contains(message, "nothing was written") || findings[0].Code == "TG501" {
		s.wantBefore(t)
		for _, dir := range s.dirs {
			if _, err := os.Stat(filepath.Join(dir, "sub")); err == nil {
				t.Fatalf("a folder was left by a build that says %q", message)
			}
		}
	} else if !strings.Contains(message, "were written before") {
		t.Fatalf("the finding does not say what was written: %s", message)
	}
}

func TestApplySurvivesEveryCrash(t *testing.T) {
	for n, last := int64(1), calls(t); n <= last; n += stride(t, 1) {
		s := newScenario(t)
		s.build(t, &faults{failAt: n, err: errors.New("killed")}, 1)
		s.wantWhole(t)
		s.wantNoticed(t)
		wantCodes(t, s.build(t, &faults{}, 2))
		s.wantAfter(t)
	}
}

// wantNoticed fails if files are out of date and build --check would not report it.
func (s *scenario) wantNoticed(t testing.TB) {
	t.Helper()
	for i, c := range s.plan(t) {
		whole := true
		on := tree(t, s.dirs[i])
		for name, want := range s.after[i] {
			whole = whole && on[name] == want
		}
		for name := range s.before[i] {
			_, stays := s.after[i][name]
			_, there := on[name]
			whole = whole && there == stays
		}
		if noticed := len(c.Check()) > 0; noticed == whole {
			t.Fatalf("the files are as wanted: %v, and check reports something: %v", whole, noticed)
		}
	}
}

// TestSweep checks that temporary files of a killed build are removed, also by a build that
// writes nothing.
func TestSweep(t *testing.T) {
	dead := exec.Command(os.Args[0], "-test.run=^$")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	killed, living := thisProcess(), thisProcess().temp("x_gen.go")
	killed.pid = dead.Process.Pid
	dir := folder(t, map[string]string{killed.temp("x_gen.go"): "", living: "", "x_gen.go": "package p\n"})
	Sweep(dir, filepath.Join(dir, "none"))
	wantTree(t, dir, map[string]string{living: "", "x_gen.go": "package p\n"})
}

// TestApplySurvivesKill does the same with processes that are really killed.
func TestApplySurvivesKill(t *testing.T) {
	const at, first, second = "TOPOGEN_TEST_KILL_AT", "TOPOGEN_TEST_DIR_0", "TOPOGEN_TEST_DIR_1"
	if n, err := strconv.ParseInt(os.Getenv(at), 10, 64); err == nil {
		s := &scenario{dirs: [2]string{os.Getenv(first), os.Getenv(second)}}
		apply(t.Context(), (&faults{failAt: n, kill: func() { os.Exit(9) }}).open, thisProcess(), nil, s.plan(t))
		return
	}
	for n, last := int64(1), calls(t); n <= last; n += stride(t, 3) {
		s := newScenario(t)
		child := exec.Command(os.Args[0], "-test.run=^TestApplySurvivesKill$")
		child.Env = append(os.Environ(), fmt.Sprintf("%s=%d", at, n), first+"="+s.dirs[0], second+"="+s.dirs[1])
		if err := child.Run(); err == nil {
			t.Fatalf("call %d: the child was not killed", n)
		}
		s.wantWhole(t)
		wantCodes(t, Apply(t.Context(), nil, s.plan(t)...))
		s.wantAfter(t)
	}
}

func TestFindingsSayWhatToDo(t *testing.T) {
	for want, err := range map[string]error{
		"free some space":          syscall.ENOSPC,
		"make the folder writable": fs.ErrPermission,
		"run topogen build again":  errors.New("input/output error"),
	} {
		s := newScenario(t)
		findings := s.build(t, &faults{failAt: 1, err: err}, 1)
		wantCodes(t, findings, "TG503")
		if !strings.Contains(findings[0].Suggestion, want) || !strings.Contains(findings[0].Message, err.Error()) {
			t.Errorf("%v: %+v", err, findings[0])
		}
	}
}

func TestSweepSparesTheLiving(t *testing.T) {
	self := process(1)
	self.alive = func(pid int) bool { return pid == 2 }
	elsewhere := self
	elsewhere.host, elsewhere.pid = "ffffffff", 3
	files := map[string]bool{ // whether it is stray
		self.temp("x_gen.go"):                     false,
		process(2).temp("x_gen.go"):               false,
		process(3).temp("x_gen.go"):               true,
		elsewhere.temp("x_gen.go"):                false,
		".topogen-notes.tmp":                      false,
		".topogen-.tmp":                           false,
		".topogen-" + self.host + "-x-0.tmp":      false,
		".topogen-" + self.host + "--3-0.tmp":     false,
		"topogen-" + self.host + "-3-0.tmp":       false,
		".topogen-" + self.host + "-3-0.tmp.orig": false,
	}
	check := func(now func() time.Time, strayAnyway bool) {
		dir := folder(t, nil)
		want := map[string]string{}
		for name, stray := range files {
			put(t, dir, map[string]string{name: ""})
			ours := strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
			if !stray && (!strayAnyway || !ours) {
				want[name] = ""
			}
		}
		d, err := openRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		o := self
		o.now = now
		sweep(d, ".", o)
		wantTree(t, dir, want)
	}
	check(time.Now, false)
	check(func() time.Time { return time.Now().Add(2 * tempAgeMax) }, true)
}

func TestAlive(t *testing.T) {
	if !alive(os.Getpid()) {
		t.Error("this process counts as dead")
	}
	child := exec.Command(os.Args[0], "-test.run=^$")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	if alive(child.Process.Pid) {
		t.Error("a process that was waited for counts as alive")
	}
}
