package suite

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/bench/subject"
)

const (
	unchangedMillisMax = 15 // a goal, like the following constants
	buildBytesMax      = 250 << 20
	smallSubject       = 100
	largeSubject       = 1000
	smallTimesMax      = 1.5
	largeTimesMax      = 3

	buildRoundsMax   = 5                       // each round takes seconds
	cacheTrustsAfter = 2500 * time.Millisecond // longer than the time in its documentation
)

// Tools are the measured programs and the modules on which they run.
type Tools struct {
	dir               string // temporary folder
	goCache           string // Go's build cache, which is warm
	topogen, stringer string
	Small, Large      *subject.Module
}

// MakeTools compiles topogen and stringer and writes the subjects. The working directory
// must be in this module.
func MakeTools() (*Tools, error) {
	dir, err := os.MkdirTemp("", "topogen-bench")
	if err != nil {
		return nil, err
	}
	t := &Tools{dir: dir, topogen: filepath.Join(dir, "topogen"), stringer: filepath.Join(dir, "stringer")}
	if err := t.make(); err != nil {
		t.Remove()
		return nil, err
	}
	return t, nil
}

func (t *Tools) make() (err error) {
	for path, pkg := range map[string]string{
		t.topogen:  "github.com/topogen/topogen/cmd/topogen",
		t.stringer: "golang.org/x/tools/cmd/stringer",
	} {
		if out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
			return fmt.Errorf("compiling %s: %w\n%s", pkg, err, out)
		}
	}
	if t.goCache, err = output("go", "env", "GOCACHE"); err != nil {
		return err
	}
	checkout, err := output("go", "list", "-m", "-f", "{{.Dir}}", "github.com/topogen/topogen")
	if err != nil {
		return err
	}
	if t.Small, err = subject.Write(filepath.Join(t.dir, "small"), checkout, smallSubject); err != nil {
		return err
	}
	t.Large, err = subject.Write(filepath.Join(t.dir, "large"), checkout, largeSubject)
	return err
}

func output(command ...string) (string, error) {
	out, err := exec.Command(command[0], command[1:]...).Output()
	return strings.TrimSpace(string(out)), err
}

// Remove deletes the files of MakeTools. Files that remain are in the temporary folder.
func (t *Tools) Remove() { _ = os.RemoveAll(t.dir) }

// Stringer runs stringer on a package of constants.
func (t *Tools) Stringer() (Usage, error) {
	return t.run(filepath.Join(t.Small.Dir, "colour"), t.stringer, "-type", "Colour")
}

// Build builds a subject after a change.
func (t *Tools) Build(m *subject.Module) (Usage, error) {
	if err := m.Change(); err != nil {
		return Usage{}, err
	}
	return t.Unchanged(m)
}

// Unchanged builds a subject that has not changed since its last build.
func (t *Tools) Unchanged(m *subject.Module) (Usage, error) {
	return t.run(m.Dir, t.topogen, "build")
}

// Usage is the time and the memory of a command.
type Usage struct {
	Time  time.Duration
	Bytes uint64 // largest resident size of the command or one of its children
}

func (t *Tools) run(dir string, command ...string) (Usage, error) {
	c := exec.Command(command[0], command[1:]...)
	c.Dir = dir
	// Its own cache, so that data about other builds does not slow topogen down.
	c.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(t.dir, "cache"), "GOCACHE="+t.goCache)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	began := time.Now()
	err := c.Run()
	took := time.Since(began)
	if err != nil {
		return Usage{}, fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out.Bytes())
	}
	usage, _ := c.ProcessState.SysUsage().(*syscall.Rusage)
	return Usage{took, uint64(usage.Maxrss) << 10}, nil // Linux reports KiB
}

// Command is a command that is measured.
type Command struct {
	Name    string
	Prepare func() error // called once before the measurement; may be nil
	Run     func() (Usage, error)
}

// Commands are the commands of the table; the first is stringer.
func (t *Tools) Commands() []Command {
	settle := func(m *subject.Module) func() error {
		return func() error { return t.settle(m) }
	}
	return []Command{
		{"stringer", nil, t.Stringer},
		{"100 processors", nil, func() (Usage, error) { return t.Build(t.Small) }},
		{"1,000 processors", nil, func() (Usage, error) { return t.Build(t.Large) }},
		{"stringer again", nil, t.Stringer},
		{"100 processors, nothing changed", settle(t.Small), func() (Usage, error) { return t.Unchanged(t.Small) }},
		{"1,000 processors, nothing changed", settle(t.Large), func() (Usage, error) { return t.Unchanged(t.Large) }},
	}
}

// settle builds until the cache has an entry. The cache ignores files that have just
// changed.
func (t *Tools) settle(m *subject.Module) error {
	time.Sleep(cacheTrustsAfter)
	_, err := t.Unchanged(m)
	return err
}

// turns runs the commands in turns and returns the rows of the table.
func turns(commands []Command, rounds int) (rows []buildRow, err error) {
	rows = make([]buildRow, len(commands))
	for i, c := range commands {
		rows[i].name = c.Name
		if c.Prepare != nil {
			if err := c.Prepare(); err != nil {
				return nil, err
			}
		}
	}
	for round := range rounds + 1 {
		for i, c := range commands {
			usage, err := c.Run()
			if err != nil {
				return nil, err
			}
			if round == 0 {
				continue // warm-up
			}
			r := &rows[i]
			r.took = append(r.took, float64(usage.Time))
			r.ratios = append(r.ratios, float64(usage.Time)/rows[0].took[round-1])
			r.most = max(r.most, usage.Bytes)
		}
	}
	return rows, nil
}

// buildRow holds the measurements of a command by round.
type buildRow struct {
	name   string
	took   []float64 // nanoseconds
	ratios []float64 // to the first command
	most   uint64    // bytes
}

func (r *buildRow) times() float64  { return measure.Median(slices.Clone(r.ratios)) }
func (r *buildRow) millis() float64 { return measure.Median(slices.Clone(r.took)) / 1e6 }

func (r *buildRow) columns() []string {
	return []string{r.name, fmt.Sprintf("%.2f", r.times()), fmt.Sprintf("%.1f", r.millis()), fmt.Sprintf("%.0f", float64(r.most)/(1<<20))}
}

func build(e Effort) (Section, error) {
	s := Section{
		Title: "topogen build",
		Note: "Wall time of the whole command, including child processes, compared with `stringer` on a package of three constants. " +
			"The topology changes before each build, except in the rows with nothing changed. Go's build cache is warm.",
		Columns: []string{"", "times stringer", "ms", "most memory, MB"},
	}
	tools, err := MakeTools()
	if err != nil {
		return s, err
	}
	defer tools.Remove()
	rounds, commands := min(e.Rounds, buildRoundsMax), tools.Commands()
	changed, err := turns(commands[:3], rounds)
	if err != nil {
		return s, err
	}
	unchanged, err := turns(commands[3:], rounds)
	if err != nil {
		return s, err
	}
	for _, r := range slices.Concat(changed, unchanged) {
		s.Rows = append(s.Rows, r.columns())
	}
	fast, large := &unchanged[1], &changed[2]
	s.Claims = []Claim{
		{"build, nothing changed", "≤ 15 ms", fmt.Sprintf("%.1f ms", fast.millis()), fast.millis() <= unchangedMillisMax},
		atMost("build, 100 processors, against stringer", smallTimesMax, changed[1].times()),
		atMost("build, 1,000 processors, against stringer", largeTimesMax, large.times()),
		{"build, 1,000 processors, memory", "< 250 MB", fmt.Sprintf("%.0f MB", float64(large.most)/(1<<20)), large.most < buildBytesMax},
	}
	return s, nil
}
