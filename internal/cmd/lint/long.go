package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/format"
	"go/token"
	"path"
	"strings"
)

// longFile runs the tests that have an amount of their own for long runs.
const longFile = ".ci/long"

// Build tags of files with tests.
var (
	raceTags  = []string{"race"}
	otherTags = []string{"protobuf"}
)

// long finds tests with an amount for long runs that no line of .ci/long runs, and lines that
// name a test that does not exist. An amount is a call of speed.Long, or of another function
// of package speed with an amount for long runs that is not the amount for landing. Only calls
// in the test files of the same folder are found.
func long(r *repo) (found []finding, err error) {
	lines, found, err := r.longLines()
	if err != nil {
		return nil, err
	}
	byFolder, err := r.testFiles()
	if err != nil {
		return nil, err
	}
	var all []*test
	for _, files := range byFolder {
		tests, err := r.testsOf(files)
		if err != nil {
			return nil, err
		}
		all = append(all, tests...)
	}
	for _, t := range all {
		ran := false
		for _, l := range lines { // all of them, for unmatched
			ran = l.runs(t) || ran
		}
		if !t.amount.IsValid() {
			continue
		}
		r.count(1)
		if !ran {
			file, line := r.place(t.amount)
			found = append(found, r.at(t.at, "add a line to %s that runs %s%s: it has an amount for long runs at %s:%d", longFile, t.name, t.how(), file, line))
		}
	}
	for _, l := range lines {
		for _, text := range l.unmatched() {
			found = append(found, finding{longFile, l.line, fmt.Sprintf("%s selects no test: correct the name", text)})
		}
	}
	r.note("%d tests have an amount for long runs, and %d lines run tests", r.examined, len(lines))
	return found, nil
}

// A test is a function that go test -run can select.
type test struct {
	folder, name string
	at           token.Pos
	amount       token.Pos                // of the call with an amount for long runs
	noRace       bool                     // it skips itself, or most of its amount, with the race detector
	hasTags      func(tags []string) bool // whether its file is part of a build with these tags
}

// how says what the line for a test must have.
func (t *test) how() string {
	switch {
	case t.noRace || t.hasTags(nil) && !t.hasTags(raceTags):
		return " without -race"
	case t.hasTags(nil):
		return ""
	case t.hasTags(raceTags):
		return " with -race"
	default:
		return " with -tags " + strings.Join(otherTags, ",")
	}
}

// testFiles returns the test files of each folder.
func (r *repo) testFiles() (map[string][]string, error) {
	paths, err := r.paths()
	if err != nil {
		return nil, err
	}
	byFolder := make(map[string][]string)
	for _, file := range paths {
		if strings.HasSuffix(file, "_test.go") {
			byFolder[path.Dir(file)] = append(byFolder[path.Dir(file)], file)
		}
	}
	return byFolder, nil
}

// testsOf returns the tests in the files of a folder. A test has the amounts of the
// declarations that it uses, directly or through others. They are found by their names: a name
// after a dot uses the methods of that name, and other names use the other declarations.
func (r *repo) testsOf(files []string) (tests []*test, err error) {
	byName := make(map[string][]*user)
	for _, file := range files {
		syntax, err := r.parse(file)
		if err != nil {
			return nil, err
		}
		hasTags := r.tagsOf(file)
		isBuilt := hasTags(nil) || hasTags(raceTags) || hasTags(otherTags)
		for _, d := range syntax.Decls {
			u := usesOf(d)
			for _, name := range declaredBy(d) {
				byName[name] = append(byName[name], u)
			}
			if f, ok := d.(*ast.FuncDecl); ok && isBuilt && f.Recv == nil && isRun(f.Name.Name) {
				tests = append(tests, &test{folder: path.Dir(file), name: f.Name.Name, at: f.Pos(), hasTags: hasTags})
			}
		}
	}
	for _, t := range tests {
		t.follow(byName, t.name, make(map[string]bool))
	}
	return tests, nil
}

// tagsOf returns a function that reports whether a file is part of a build with some tags. The
// build is for Linux, where .ci/long runs.
func (r *repo) tagsOf(file string) func(tags []string) bool {
	known := make(map[string]bool)
	return func(tags []string) bool {
		key := strings.Join(tags, ",")
		if _, ok := known[key]; !ok {
			c := build.Default
			c.GOOS, c.GOARCH, c.CgoEnabled, c.BuildTags = "linux", "amd64", true, tags
			match, err := c.MatchFile(r.absolute(path.Dir(file)), path.Base(file))
			known[key] = match && err == nil // the file has been parsed
		}
		return known[key]
	}
}

// isRun reports whether go test -run can select a function.
func isRun(name string) bool {
	return isTest(name) && name != "TestMain" && !strings.HasPrefix(name, "Benchmark")
}

// follow adds the amounts of the declarations that name uses.
func (t *test) follow(byName map[string][]*user, name string, seen map[string]bool) {
	if seen[name] {
		return
	}
	seen[name] = true
	for _, u := range byName[name] {
		if !t.amount.IsValid() {
			t.amount = u.amount
		}
		t.noRace = t.noRace || u.noRace
		for _, used := range u.uses {
			t.follow(byName, used, seen)
		}
	}
}

// A user is a declaration and what it uses.
type user struct {
	uses   []string // names; methods begin with a dot
	amount token.Pos
	noRace bool
}

// usesOf returns what a declaration uses.
func usesOf(d ast.Decl) *user {
	u := new(user)
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := speedCall(n)
			u.noRace = u.noRace || name == "NoRace" || name == "Tenth"
			if !u.amount.IsValid() && isLongAmount(name, n.Args) {
				u.amount = n.Pos()
			}
		case *ast.SelectorExpr:
			u.uses = append(u.uses, "."+n.Sel.Name)
		case *ast.Ident:
			u.uses = append(u.uses, n.Name)
		}
		return true
	})
	return u
}

// speedCall returns the name of the function of package speed that is called, or "".
func speedCall(call *ast.CallExpr) string {
	f := call.Fun
	if generic, ok := f.(*ast.IndexExpr); ok {
		f = generic.X
	}
	if s, ok := f.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "speed" {
			return s.Sel.Name
		}
	}
	return ""
}

// isLongAmount reports whether a call of a function of package speed has an amount for long
// runs that is not the amount for landing. The arguments are t and the three amounts.
func isLongAmount(name string, args []ast.Expr) bool {
	switch name {
	case "Long":
		return true
	case "Pick", "Seeds", "Checks":
		return len(args) == 4 && sourceOf(args[2]) != sourceOf(args[3])
	}
	return false
}

// sourceOf returns the source of an expression.
func sourceOf(e ast.Expr) string {
	var b strings.Builder
	if err := format.Node(&b, token.NewFileSet(), e); err != nil {
		panic(err) // the expression has been parsed
	}
	return b.String()
}

// declaredBy returns the names that a declaration declares. Names of methods begin with a dot.
func declaredBy(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			return []string{"." + d.Name.Name}
		}
		return []string{d.Name.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range v.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}
