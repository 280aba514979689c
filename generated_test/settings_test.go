package generated_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notSettings are types of the runtime that generated code makes and that carry no setting.
var notSettings = []string{
	"runtime/durable/edges.Instance", // an instance of this process
	"runtime/fsm.Sentinel",           // an error of the user
	"runtime/piper/border.Address",   // of one message
	"runtime/piper.Target",           // of one message
	"runtime/topo.Instance",          // the name of an instance
}

// TestEverySettingIsObserved: each type in which generated code passes settings to the runtime is in a
// table of effects.Check, which then demands a test for each of its fields.
func TestEverySettingIsObserved(t *testing.T) {
	files, err := filepath.Glob("*/topology_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		folders := map[string]string{}
		for _, i := range f.Imports {
			full := strings.Trim(i.Path.Value, `"`)
			if folder, ok := strings.CutPrefix(full, "github.com/topogen/topogen/"); ok && strings.HasPrefix(folder, "runtime/") {
				name := path.Base(full)
				if i.Name != nil {
					name = i.Name.Name
				}
				folders[name] = folder
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			of := literal.Type
			if list, ok := of.(*ast.ArrayType); ok {
				of = list.Elt
			}
			if of, ok := of.(*ast.SelectorExpr); ok {
				if name, ok := of.X.(*ast.Ident); ok && folders[name.Name] != "" {
					known[folders[name.Name]+"."+of.Sel.Name] = true
				}
			}
			return true
		})
	}
	if len(known) < 10 {
		t.Fatalf("generated code makes only %v", known)
	}
	for full := range known {
		if slices.Contains(notSettings, full) || isObserved(t, full) {
			continue
		}
		t.Errorf("no settings_test.go passes %s to effects.Check", full)
	}
}

// isObserved reports whether a settings_test.go passes a type to effects.Check.
func isObserved(t *testing.T, full string) bool {
	t.Helper()
	folder, name, _ := strings.Cut(full, ".")
	tests, err := filepath.Glob("../" + folder + "/settings_test.go")
	if err != nil {
		t.Fatal(err)
	}
	outside := path.Base(folder) + "." + name + "{}"
	if folder == "runtime/durable" { // whose functions are those of durable edges
		tests = append(tests, "../runtime/durable/edges/settings_test.go")
	}
	for _, file := range tests {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, last, _ := strings.Cut(string(text), "\n\t}, ") // the end of the table
		line, _, _ := strings.Cut(last, "\n")
		if types := strings.Split(strings.TrimSuffix(line, ")"), ", "); slices.Contains(types, name+"{}") || slices.Contains(types, outside) || strings.Contains(string(text), "effects.Check(t, table, ") && strings.Contains(string(text), outside) {
			return true
		}
	}
	return false
}
