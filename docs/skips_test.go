package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// folder has the tests of a package, and what their conditions use.
type folder struct {
	tests   []*testFunc
	funcs   map[string]*ast.FuncDecl
	strings map[string]string // constants
	flags   map[string]string // the names of flags that are false by default, by variable
}

// parseFolder parses the test files of a folder. Files that do not parse have no tests.
func parseFolder(dir string) *folder {
	f := &folder{funcs: make(map[string]*ast.FuncDecl), strings: make(map[string]string), flags: make(map[string]string)}
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		isBuilt := buildsOf(name)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Body != nil {
					f.funcs[d.Name.Name] = d
				}
				if kindOf(d, file.Comments) != "" {
					f.tests = append(f.tests, &testFunc{d, isBuilt})
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
						for i, name := range v.Names {
							f.addValue(name.Name, v.Values[i])
						}
					}
				}
			}
		}
	}
	return f
}

func (f *folder) addValue(name string, value ast.Expr) {
	if text, ok := f.text(value); ok {
		f.strings[name] = text
	}
	if call, ok := value.(*ast.CallExpr); ok && callee(call) == "flag.Bool" && len(call.Args) == 3 {
		if of, ok := f.text(call.Args[0]); ok && callee(call.Args[1]) == "false" {
			f.flags[name] = of
		}
	}
}

// skips reports whether a function always skips its test, directly or in a function that it calls. It looks at the
// statements before the first that could end the function in another way. ci has the commands that run tests.
func (f *folder) skips(body *ast.BlockStmt, ci string, seen map[string]bool) bool {
	for _, s := range body.List {
		switch s := s.(type) {
		case *ast.ExprStmt:
			call, ok := s.X.(*ast.CallExpr)
			if !ok {
				continue
			}
			name := callee(call)
			if _, method, _ := strings.Cut(name, "."); method == "Skip" || method == "Skipf" || method == "SkipNow" {
				return true
			}
			if helper := f.funcs[name]; helper != nil && !seen[name] {
				seen[name] = true
				if f.skips(helper.Body, ci, seen) {
					return true
				}
			}
		case *ast.BlockStmt:
			if f.skips(s, ci, seen) {
				return true
			}
		case *ast.IfStmt:
			if value, known := f.evaluate(s.Cond, ci); known && value && f.skips(s.Body, ci, seen) {
				return true
			}
		case *ast.ReturnStmt:
			return false
		}
	}
	return false
}

// evaluate returns the value of a condition if it is the same in all runs of .ci/run and .ci/long.
func (f *folder) evaluate(e ast.Expr, ci string) (value, known bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return f.evaluate(e.X, ci)
	case *ast.Ident:
		return e.Name == "true", e.Name == "true" || e.Name == "false"
	case *ast.StarExpr: // a flag that no command has
		name, ok := f.flags[callee(e.X)]
		return false, ok && !strings.Contains(ci, " -"+name)
	case *ast.CallExpr:
		return false, callee(e) == "testing.Short"
	case *ast.UnaryExpr:
		value, known = f.evaluate(e.X, ci)
		return !value, known && e.Op == token.NOT
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			x, knowX := f.evaluate(e.X, ci)
			y, knowY := f.evaluate(e.Y, ci)
			decides := e.Op == token.LOR // this value of one side decides
			if knowX && x == decides || knowY && y == decides {
				return decides, true
			}
			return !decides, knowX && knowY
		}
		x, knowX := f.constant(e.X, ci)
		y, knowY := f.constant(e.Y, ci)
		return (x == y) == (e.Op == token.EQL), knowX && knowY && (e.Op == token.EQL || e.Op == token.NEQ)
	}
	return false, false
}

// constant returns a text that is the same in all runs: a constant, the system, or a variable that no command sets.
func (f *folder) constant(e ast.Expr, ci string) (text string, known bool) {
	switch callee(e) {
	case "runtime.GOOS":
		return "linux", true
	case "os.Getenv":
		call, _ := e.(*ast.CallExpr)
		if call == nil || len(call.Args) != 1 {
			return "", false
		}
		name, ok := f.text(call.Args[0])
		return "", ok && !strings.Contains(ci, name+"=")
	}
	return f.text(e)
}

// text returns the value of a string literal or of a constant of the folder.
func (f *folder) text(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.Ident:
		text, ok = f.strings[e.Name]
	}
	return text, ok
}

// callee returns the name of a function that is called, or of a value: a, or a.b.
func callee(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.CallExpr:
		return callee(e.Fun)
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if x := callee(e.X); x != "" {
			return x + "." + e.Sel.Name
		}
	}
	return ""
}
