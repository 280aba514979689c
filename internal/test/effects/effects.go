// Package effects makes sure that each setting of a package has a test that observes its effect.
//
// A parser and an engine can both have tests while nothing passes the value from one to the
// other. So a package lists its settings, each with a test, and Check fails if one is missing:
//
//	effects.Check(t, effects.Table{
//		"Config.Lease":    func(t *testing.T) { … }, // sets the field, and observes what the engine does
//		"Config.Retry":    effects.By("TestARetryWaits", "generated_test/retries TestDelays"),
//		"TOPOGEN_WORKERS": func(t *testing.T) { … },
//		"Workers()":       func(t *testing.T) { … },
//	}, Config{})
package effects

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Table has tests that observe the effects of settings. The key is TYPE.FIELD for a field of a
// configuration, the name of an environment variable, or NAME() for a function that returns an
// Option.
type Table map[string]func(*testing.T)

// Check runs the tests. It fails if a setting of the package in the current folder has no test, or
// if a test has no setting. The settings are the exported fields of the types, and the variables
// and options that occur in the code of the package.
func Check(t *testing.T, table Table, types ...any) {
	t.Helper()
	known := inCode(t)
	for _, v := range types {
		of := reflect.TypeOf(v)
		for field := range of.Fields() {
			if field.IsExported() {
				known = append(known, of.Name()+"."+field.Name)
			}
		}
	}
	for _, name := range known {
		if table[name] == nil {
			t.Errorf("the setting %s has no test that observes its effect", name)
		}
	}
	for name, effect := range table {
		if !slices.Contains(known, name) {
			t.Errorf("%s is not a setting of this package", name)
			continue
		}
		t.Run(name, effect)
	}
}

// By stands for tests that observe the effect of a setting: "TestName" of this package, or
// "FOLDER TestName" of a package in a folder below the root of the module. It fails if such a test
// does not exist.
func By(tests ...string) func(*testing.T) {
	return func(t *testing.T) {
		for _, name := range tests {
			folder := "."
			if in, of, ok := strings.Cut(name, " "); ok {
				folder, name = filepath.Join(root(t), filepath.FromSlash(in)), of
			}
			if !declares(t, folder, name) {
				t.Errorf("%s has no %s", folder, name)
			}
		}
	}
}

// declares reports whether a test in the folder declares a function.
func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "\nfunc "+name+"(")
	})
}

// root is the folder of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no folder above this one has a go.mod")
		}
		dir = filepath.Dir(dir)
	}
}

// variable is an environment variable of topogen in quotation marks.
var variable = regexp.MustCompile(`^"(TOPOGEN_[A-Z_]+)"$`)

// inCode returns the environment variables and options in the code of the current folder.
func inCode(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if found := variable.FindStringSubmatch(n.Value); found != nil && !slices.Contains(names, found[1]) {
					names = append(names, found[1])
				}
			case *ast.FuncDecl:
				if results := n.Type.Results; n.Recv == nil && n.Name.IsExported() && results != nil && len(results.List) == 1 && isOption(results.List[0].Type) {
					names = append(names, n.Name.Name+"()")
				}
			}
			return true
		})
	}
	return names
}

func isOption(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "Option"
}
