package docs_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// checker says what is wrong with the names of tests. A name is one of these:
//
//	FOLDER TestName        a test, a fuzz target, or an example with output
//	FOLDER mutant NAME     a deliberate bug in testdata/mutants.txt of the folder
//	FOLDER/testdata/CASE   a file or folder that the tests of a folder read
//	generated_test/CASE    a folder with a topology
//	docs/PAGE.md           a page whose blocks are executed
type checker struct {
	root    string
	ci      string // the commands of .ci/run and .ci/long
	steps   []step
	folders map[string]*folder
}

// step is a command of .ci/run or .ci/long that runs tests.
type step struct {
	tags    []string
	run     *regexp.Regexp // nil: all tests
	folders []string       // "a/..." is a and all folders below it; none: all folders of the module
}

// benchmarks is a folder with a module of its own.
const benchmarks = "bench/"

var (
	testsPattern  = regexp.MustCompile(`\btests |\bgo test |gotestsum" `)
	tagsPattern   = regexp.MustCompile(` -tags[ =](\S+)`)
	runPattern    = regexp.MustCompile(` -run[ =]['"]?([^'"\s]*)`)
	folderPattern = regexp.MustCompile(` \./([\w/.]*)`)
)

// newChecker reads the commands of .ci/run and .ci/long.
func newChecker(root string) *checker {
	c := &checker{root: root, folders: make(map[string]*folder)}
	for _, name := range []string{".ci/run", ".ci/long"} {
		module := ""
		for line := range strings.Lines(strings.ReplaceAll(c.read(name), "\\\n", " ")) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "tests()") || strings.HasPrefix(line, "step ") {
				continue
			}
			c.ci += line + "\n"
			if line == "cd bench" {
				module = benchmarks
			}
			if testsPattern.MatchString(line) {
				c.steps = append(c.steps, stepOf(line, module))
			}
		}
	}
	return c
}

func stepOf(line, module string) (s step) {
	if strings.Contains(line, "cd bench && ") {
		module = benchmarks
	}
	for _, m := range tagsPattern.FindAllStringSubmatch(line, -1) {
		s.tags = append(s.tags, strings.Split(m[1], ",")...)
	}
	if strings.Contains(line, " -race") {
		s.tags = append(s.tags, "race")
	}
	if m := runPattern.FindStringSubmatch(line); m != nil && !strings.Contains(m[1], "$names") && !strings.Contains(m[1], "$name\\") {
		s.run = regexp.MustCompile(strings.Split(m[1], "/")[0])
	}
	for _, m := range folderPattern.FindAllStringSubmatch(line, -1) {
		s.folders = append(s.folders, module+m[1])
	}
	if strings.Contains(line, " $packages") || module != "" && len(s.folders) == 0 {
		s.folders = []string{module + "..."}
	}
	return s
}

// runs reports whether the step runs a test.
func (s step) runs(t *testFunc, at string) bool {
	isIn := func(folder string) bool {
		prefix, below := strings.CutSuffix(folder, "...")
		return at == folder || below && strings.HasPrefix(at+"/", prefix) && (prefix != "" || !strings.HasPrefix(at, benchmarks))
	}
	if len(s.folders) > 0 && !slices.ContainsFunc(s.folders, isIn) || len(s.folders) == 0 && strings.HasPrefix(at, benchmarks) {
		return false
	}
	return (s.run == nil || s.run.MatchString(t.Name.Name)) && t.isBuilt(s.tags)
}

// problem says why a name is not a proof; "" if it is one.
func (c *checker) problem(name string) string {
	at, test, isTest := strings.Cut(name, " ")
	mutant, isMutant := strings.CutPrefix(test, "mutant ")
	owner, _, isCase := strings.Cut(name, "/testdata/")
	switch {
	case isMutant:
		if !strings.Contains("\n"+c.read(path.Join(at, "testdata/mutants.txt")), "\n== "+mutant+": ") {
			return "does not exist: write a name from testdata/mutants.txt of the folder"
		}
		return ""
	case isTest:
		return c.testProblem(at, test)
	case !c.exists(name):
		return "does not exist"
	case path.Ext(name) == ".md":
		return c.pageProblem(name)
	case isCase && len(c.folder(owner).tests) > 0:
		if strings.Contains(name, "/script/") && regexp.MustCompile(`(?m)^(skip|stop)\b`).MatchString(firstPart(c.read(name))) {
			return "is a script that always skips"
		}
		return ""
	case path.Dir(name) == "generated_test" && c.exists(path.Join(name, "topology.yml")):
		return ""
	}
	return "is not a test: name a test, a case in testdata, or a page"
}

// firstPart returns a txtar file up to its first file, which is the script.
func firstPart(text string) string {
	first, _, _ := strings.Cut("\n"+text, "\n-- ")
	return first
}

func (c *checker) testProblem(at, name string) string {
	f := c.folder(at)
	var found *testFunc
	for _, t := range f.tests {
		if t.Name.Name != name {
			continue
		}
		if found = t; slices.ContainsFunc(c.steps, func(s step) bool { return s.runs(t, at) }) {
			if f.skips(t.Body, c.ci, make(map[string]bool)) {
				return "always skips"
			}
			return ""
		}
	}
	if found != nil {
		return "is not run: no command of .ci/run or .ci/long has its build tags and its folder"
	}
	return "does not exist, or is not a test"
}

// pageProblem says why a page is not a proof: TestPages must execute a command or compile Go code of it.
func (c *checker) pageProblem(name string) string {
	if why := checkedElsewhere[name]; why != "" {
		return "is not executed: " + why
	}
	p, err := parsePage(name, []byte(c.read(name)))
	if err != nil {
		return err.Error()
	}
	for _, b := range p.blocks {
		commands, _ := b.commands()
		isExecuted := b.language == "console" && slices.ContainsFunc(commands, func(c command) bool { return !notRun[c.text] })
		isCompiled := b.language == "go" && p.module != "" && b.settings["file"] == ""
		if isExecuted || isCompiled {
			return ""
		}
	}
	return "is not executed: it has no command, and no Go code that is compiled"
}

func (c *checker) exists(name string) bool {
	_, err := os.Stat(filepath.Join(c.root, filepath.FromSlash(name)))
	return err == nil
}

// read returns the text of a file, or "" if there is none.
func (c *checker) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(c.root, filepath.FromSlash(name)))
	return string(text)
}

// folder parses the test files of a folder.
func (c *checker) folder(at string) *folder {
	if c.folders[at] == nil {
		c.folders[at] = parseFolder(filepath.Join(c.root, filepath.FromSlash(at)))
	}
	return c.folders[at]
}

// testFunc is a function that go test runs.
type testFunc struct {
	*ast.FuncDecl
	isBuilt func(tags []string) bool // whether its file is part of a build
}

// buildsOf returns a function that reports whether a file is part of a build with some tags. The build is for
// Linux, where .ci/run and .ci/long run.
func buildsOf(file string) func(tags []string) bool {
	known := make(map[string]bool)
	return func(tags []string) bool {
		key := strings.Join(tags, ",")
		if _, ok := known[key]; !ok {
			b := build.Default
			b.GOOS, b.GOARCH, b.CgoEnabled, b.BuildTags = "linux", "amd64", true, tags
			match, err := b.MatchFile(filepath.Dir(file), filepath.Base(file))
			known[key] = match && err == nil
		}
		return known[key]
	}
}

// kindOf returns what go test takes a function for: "" for other functions.
func kindOf(f *ast.FuncDecl, comments []*ast.CommentGroup) string {
	for prefix, parameter := range map[string]string{"Test": "T", "Fuzz": "F", "Example": ""} {
		if f.Recv != nil || !strings.HasPrefix(f.Name.Name, prefix) || f.Name.Name == "TestMain" {
			continue
		}
		var got string
		for _, p := range f.Type.Params.List {
			if star, ok := p.Type.(*ast.StarExpr); ok {
				if s, ok := star.X.(*ast.SelectorExpr); ok && fmt.Sprint(s.X) == "testing" {
					got += s.Sel.Name
				}
			}
		}
		hasOutput := slices.ContainsFunc(comments, func(g *ast.CommentGroup) bool {
			text := strings.ToLower(g.Text())
			return f.Pos() < g.Pos() && g.End() < f.End() && (strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:"))
		})
		if got == parameter && f.Type.Params.NumFields() == len(parameter) && (parameter != "" || hasOutput) {
			return prefix
		}
	}
	return ""
}
