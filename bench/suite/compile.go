package suite

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/topogen/topogen/bench/subject"
)

const (
	compileTimesMax  = 3      // of the time and of the memory of channels, 100 processors
	compileBytesMax  = 1200e6 // 1,000 processors
	functionsEach    = 12     // compiled functions for a processor
	functionsEdge    = 8      // and for an edge
	compileRoundsMax = 3      // each of the large ones takes half a minute
)

// compiled is a package that is compiled again after a change in one handler.
type compiled struct {
	name   string
	module *subject.Module
	row    buildRow
}

// compile measures what the Go compiler takes.
func compile(e Effort) (Section, error) {
	s := Section{
		Title: "go build",
		Note: "Wall time of `go build` after a change in one handler, children included, and the most memory of one of them: a chain of processors, each of " +
			"which also reports to the last one, from topogen and wired by hand with channels. Functions are those of the package, as `go tool nm` counts them.",
		Columns: []string{"", "ms", "most memory, MB", "functions", "times channels: time", "memory"},
	}
	tools, err := MakeTools()
	if err != nil {
		return s, err
	}
	defer tools.Remove()
	var list []*compiled
	for _, n := range []*subject.Module{tools.Small, tools.Large} {
		byHand, err := subject.WriteByHand(filepath.Join(tools.dir, fmt.Sprint("byhand", n.Processors)), n.Processors)
		if err != nil {
			return s, err
		}
		list = append(list,
			&compiled{name: fmt.Sprintf("%d processors, channels", n.Processors), module: byHand},
			&compiled{name: fmt.Sprintf("%d processors, topogen", n.Processors), module: n})
		if _, err := tools.Build(n); err != nil {
			return s, err
		}
	}
	for round := range min(e.Rounds, compileRoundsMax) + 1 {
		for _, c := range list {
			if err := c.module.ChangeHandler(); err != nil {
				return s, err
			}
			usage, err := tools.run(c.module.Dir, "go", "build", ".")
			if err != nil {
				return s, err
			}
			if round > 0 { // the first one compiles the runtime, too
				c.row.took = append(c.row.took, float64(usage.Time))
				c.row.most = max(c.row.most, usage.Bytes)
			}
		}
	}
	for i, c := range list {
		functions, err := tools.functions(c.module)
		if err != nil {
			return s, err
		}
		row := []string{c.name, fmt.Sprintf("%.0f", c.row.millis()), fmt.Sprintf("%.0f", float64(c.row.most)/1e6), fmt.Sprint(functions), "1", "1"}
		if i%2 == 1 {
			peer := list[i-1]
			time, memory := c.row.millis()/peer.row.millis(), float64(c.row.most)/float64(peer.row.most)
			row[4], row[5] = fmt.Sprintf("%.2f", time), fmt.Sprintf("%.2f", memory)
			n := c.module.Processors
			most := functionsEach*n + functionsEdge*2*(n-2)
			s.Claims = append(s.Claims, Claim{fmt.Sprintf("compiled functions, %d processors and %d edges", n, 2*(n-2)), fmt.Sprintf("≤ %d", most), fmt.Sprint(functions), functions <= most})
			if n == smallSubject {
				s.Claims = append(s.Claims, atMost("go build, 100 processors, against channels", compileTimesMax, time),
					atMost("go build, 100 processors, memory against channels", compileTimesMax, memory))
			} else {
				s.Claims = append(s.Claims, Claim{"go build, 1,000 processors, memory", "< 1,200 MB", fmt.Sprintf("%.0f MB", float64(c.row.most)/1e6), float64(c.row.most) < compileBytesMax})
			}
		}
		s.Rows = append(s.Rows, row)
	}
	return s, nil
}

// functions counts the functions of a package.
func (t *Tools) functions(m *subject.Module) (int, error) {
	list := exec.Command("go", "list", "-export", "-f", "{{.Export}}", ".")
	list.Dir, list.Env = m.Dir, append(os.Environ(), "GOCACHE="+t.goCache)
	path, err := list.Output()
	if err != nil {
		return 0, err
	}
	out, err := exec.Command("go", "tool", "nm", string(bytes.TrimSpace(path))).Output()
	if err != nil {
		return 0, err
	}
	lines := slices.Collect(bytes.Lines(out))
	return len(slices.DeleteFunc(lines, func(line []byte) bool { return !bytes.Contains(line, []byte(" T ")) })), nil
}
