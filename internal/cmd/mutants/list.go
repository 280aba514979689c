package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// listFile is the list of the mutants of a package, relative to the package.
const listFile = "testdata/mutants.txt"

// list is the content of one file.
type list struct {
	pkg     string // the package, relative to the root of the module
	mutants []*mutant
}

// mutant is a deliberate bug.
type mutant struct {
	pkg, name, effect string
	where             string // file and line of the list
	tests             tests
	survives          string // why no test can catch it; "": a test can
	edits             []edit
}

func (m *mutant) id() (pkg, name string) { return m.pkg, m.name }
func (m *mutant) canBeCaught() bool      { return m.survives == "" }

// inSample reports whether a sample, which must be quick, may contain the mutant. Tests at the
// speed of landing take minutes.
func (m *mutant) inSample() bool { return m.canBeCaught() && !m.tests.landing }

// tests are the tests that catch a mutant.
type tests struct {
	pkg     string
	regexp  string // "": all tests of the package
	seeds   int    // 0: as many as the run has
	landing bool   // the tests run as in .ci/run
	hang    bool   // the tests may hang
}

// edit replaces some lines of a file.
type edit struct {
	file     string // relative to the root of the module
	old, new string // complete lines
}

// lists reads the lists of some packages, or of the whole module.
func (m *module) lists(packages []string) ([]*list, error) {
	if len(packages) == 0 {
		all, err := m.findLists("")
		return all, err
	}
	var lists []*list
	for _, pkg := range packages {
		under, recursive := strings.CutSuffix(pkg, "...")
		dir, err := m.relative(under)
		if err != nil {
			return nil, err
		}
		var found []*list
		if recursive {
			found, err = m.findLists(dir)
		} else {
			var one *list
			one, err = m.readList(dir)
			found = append(found, one)
		}
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("no package of %s has a file %s", pkg, listFile)
		}
		lists = append(lists, found...)
	}
	return lists, nil
}

// findLists reads the lists of all packages below a folder, without nested modules.
func (m *module) findLists(under string) (lists []*list, err error) {
	start := filepath.Join(m.root, under)
	return lists, filepath.WalkDir(start, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name != start {
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") {
				return filepath.SkipDir
			}
		}
		if _, err := os.Stat(filepath.Join(name, listFile)); err != nil {
			return nil
		}
		pkg, err := filepath.Rel(m.root, name)
		if err != nil {
			return err
		}
		l, err := m.readList(filepath.ToSlash(pkg))
		lists = append(lists, l)
		return err
	})
}

func (m *module) readList(pkg string) (*list, error) {
	b, err := os.ReadFile(filepath.Join(m.root, pkg, listFile))
	if err != nil {
		return nil, err
	}
	return parseList(pkg, string(b))
}

// parseList reads a list. The package comment describes the format.
func parseList(pkg, text string) (*list, error) {
	l := &list{pkg: pkg}
	usual := &mutant{pkg: pkg, tests: tests{pkg: pkg}} // the lines above the first mutant
	current := usual
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		where := path.Join(pkg, listFile) + ":" + strconv.Itoa(n)
		if head, ok := strings.CutPrefix(line, "== "); ok {
			current = &mutant{pkg: pkg, tests: usual.tests, where: where}
			if current.name, current.effect, ok = strings.Cut(head, ": "); !ok {
				return nil, fmt.Errorf("%s: a mutant must begin with \"== name: effect\"", where)
			}
			l.mutants = append(l.mutants, current)
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := current.parse(line, current == usual); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
	}
	return l, nil
}

// parse reads a line of a mutant, or a line above the first mutant.
func (m *mutant) parse(line string, usual bool) (err error) {
	key, rest, _ := strings.Cut(line, " ")
	switch {
	case key == "tests":
		m.tests.pkg, m.tests.regexp = m.pkg, rest
		if strings.HasPrefix(rest, "./") {
			m.tests.pkg, m.tests.regexp, _ = strings.Cut(strings.TrimPrefix(rest, "./"), " ")
		}
	case key == "seeds":
		if m.tests.seeds, err = strconv.Atoi(rest); err != nil || m.tests.seeds < 1 {
			return fmt.Errorf("seeds must be a positive number, got %q", rest)
		}
	case line == "landing":
		m.tests.landing = true
	case usual:
		return fmt.Errorf("only tests, seeds and landing may precede the first mutant, got %q", line)
	case line == "hangs":
		m.tests.hang = true
	case key == "survives":
		m.survives = rest
	case line[0] == '-' || line[0] == '+':
		return m.change(line)
	case strings.HasSuffix(line, ".go"):
		m.edits = append(m.edits, edit{file: path.Join(m.pkg, line)})
	default:
		return fmt.Errorf("a line must be tests, seeds, hangs, landing, survives, a Go file, or begin with - or +, got %q", line)
	}
	return nil
}

// change adds a removed or an added line. Removed lines after added lines begin another
// edit of the same file.
func (m *mutant) change(line string) error {
	if len(m.edits) == 0 {
		return fmt.Errorf("the name of a file must precede the line %q", line)
	}
	last := &m.edits[len(m.edits)-1]
	switch {
	case line[0] == '+':
		last.new += line[1:] + "\n"
	case last.new == "":
		last.old += line[1:] + "\n"
	default:
		m.edits = append(m.edits, edit{file: last.file, old: line[1:] + "\n"})
	}
	return nil
}

// apply returns the changed files.
func (m *mutant) apply(root string) (overlay, error) {
	if len(m.edits) == 0 {
		return nil, fmt.Errorf("%s: %s must change a file", m.where, m.name)
	}
	changed := overlay{}
	for _, e := range m.edits {
		name := filepath.Join(root, e.file)
		if _, ok := changed[name]; !ok {
			b, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", m.where, m.name, err)
			}
			changed[name] = string(b)
		}
		text, old := "\n"+changed[name], "\n"+e.old // so that a match begins with a line
		switch n := count(text, old); {
		case e.old == "" || e.old == e.new:
			return nil, fmt.Errorf("%s: %s must remove lines, and add other ones", m.where, m.name)
		case n != 1:
			return nil, fmt.Errorf("%s: %s does not apply: %s must contain the removed lines once, got %d times", m.where, m.name, e.file, n)
		}
		changed[name] = strings.Replace(text, old, "\n"+e.new, 1)[1:]
	}
	return changed, nil
}

// count returns how often text contains part. Two places may share the end of a line.
func count(text, part string) (n int) {
	for at := strings.Index(text, part); at >= 0; at = strings.Index(text, part) {
		n++
		text = text[at+1:]
	}
	return n
}
