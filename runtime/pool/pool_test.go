package pool_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// names are the names that users need. A name that only generated code needs belongs in
// package piper.
var names = []string{
	"Batch", "CycleLimit", "DrainTimeout", "Logger", "MessageLimit", "Node", "NodeAddress", "NodeDir", "DurableStore", "DurableListen", "DurableMemory", "NodeRoles", "Observe", "Option", "Rebalance", "Record", "Workers",
	"ErrAbandoned", "ErrCloseHangs", "ErrCycleGrows", "ErrDrainTimeout", "ErrGaveUp", "ErrHung", "ErrLateSend", "ErrNoStepper", "ErrStarted", "ErrStays", "HandlerError",
	"EdgeFigures", "FaultFigures", "InstanceFigures", "ProcessorFigures", "Snapshot",
	"FaultObserver", "Observer", "Recorder", "StartObserver",
	"Stepper",
}

// notForUsers are the options and errors of package piper that users do not meet: only
// generated code and its tests need them, or, for ErrFinished, only a border.
var notForUsers = []string{"Client", "ErrFinished", "NodeTransport", "UseBorder"}

// TestNames checks that the package has these names and no others. Each must have a
// comment and must be an alias of the same name in package piper. Every option and
// every error of package piper must have an alias, except those for tests.
func TestNames(t *testing.T) {
	ours, theirs := exported(t, "."), exported(t, "../piper")
	for name, what := range ours {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not in the list of names that users need", name)
		}
		if what.text == "" {
			t.Errorf("%s has no comment", name)
		}
		if what.value != "piper."+name {
			t.Errorf("%s is an alias of %q, want piper.%s", name, what.value, name)
		}
	}
	for _, name := range names {
		if _, ok := ours[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	found := 0
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if strings.HasPrefix(name, "Err") || theirs[name].option {
			found++
			if _, ok := ours[name]; !ok && !slices.Contains(notForUsers, name) {
				t.Errorf("piper.%s has no alias in this package", name)
			}
		}
	}
	if found < 18 {
		t.Errorf("package piper has %d options and errors, want 18 or more: the wrong files were read", found)
	}
}

// declared describes a name of package level.
type declared struct {
	text   string // the comment
	value  string // its value, such as piper.Workers
	option bool   // a function that returns an Option
}

// exported reads the exported names of a package, without methods.
func exported(t *testing.T, dir string) map[string]declared {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]declared)
	add := func(name *ast.Ident, d declared) {
		if name.IsExported() {
			all[name.Name] = d
		}
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					add(decl.Name, function(decl))
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						d := declared{text: decl.Doc.Text()}
						if spec.Assign.IsValid() {
							d.value = qualified(spec.Type)
						}
						add(spec.Name, d)
					case *ast.ValueSpec:
						for i, name := range spec.Names {
							d := declared{text: spec.Doc.Text()}
							if d.text == "" && len(decl.Specs) == 1 {
								d.text = decl.Doc.Text()
							}
							if i < len(spec.Values) {
								d.value = qualified(spec.Values[i])
							}
							add(name, d)
						}
					}
				}
			}
		}
	}
	return all
}

// function describes a function. The value is the function that its only return
// statement calls, if the call has as many arguments as the function has parameters.
func function(decl *ast.FuncDecl) declared {
	d := declared{text: decl.Doc.Text()}
	if results := decl.Type.Results; results != nil && len(results.List) == 1 {
		result, ok := results.List[0].Type.(*ast.Ident)
		d.option = ok && result.Name == "Option"
	}
	if decl.Body == nil || len(decl.Body.List) != 1 {
		return d
	}
	if r, ok := decl.Body.List[0].(*ast.ReturnStmt); ok && len(r.Results) == 1 {
		if call, ok := r.Results[0].(*ast.CallExpr); ok && len(call.Args) == decl.Type.Params.NumFields() {
			d.value = qualified(call.Fun)
		}
	}
	return d
}

// qualified returns an expression such as piper.Option as text, and "" for any other
// expression.
func qualified(x ast.Expr) string {
	if sel, ok := x.(*ast.SelectorExpr); ok {
		if pkg, ok := sel.X.(*ast.Ident); ok {
			return pkg.Name + "." + sel.Sel.Name
		}
	}
	return ""
}
