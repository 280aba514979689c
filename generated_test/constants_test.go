package generated_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/topogen/topogen/"

// constants reads constants of packages of this module from their source, so that a test can compare
// limits that no package exports.
type constants struct {
	files    *token.FileSet
	packages map[string]*types.Package
}

func newConstants() *constants { return &constants{token.NewFileSet(), map[string]*types.Package{}} }

// times is the part of package time that constants need.
const times = `package time
type Duration int64
const (
	Nanosecond Duration = 1
	Microsecond = 1000 * Nanosecond
	Millisecond = 1000 * Microsecond
	Second = 1000 * Millisecond
	Minute = 60 * Second
	Hour = 60 * Minute
)`

// Import implements types.Importer. Packages of other modules are empty: their names have no values.
func (c *constants) Import(name string) (*types.Package, error) {
	if p := c.packages[name]; p != nil {
		return p, nil
	}
	var files []*ast.File
	folder, own := strings.CutPrefix(name, module)
	if name == "time" {
		f, err := parser.ParseFile(c.files, "time.go", times, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if own {
		found, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(folder), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(c.files, file, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	config := types.Config{Importer: c, IgnoreFuncBodies: true, FakeImportC: true, Error: func(error) {}} // names of empty packages are errors
	p, _ := config.Check(name, c.files, files, nil)
	if len(files) == 0 {
		p = types.NewPackage(name, path.Base(name))
		p.MarkComplete()
	}
	c.packages[name] = p
	return p, nil
}

// value returns the value of a constant such as runtime/piper.batchMax. It may be followed by -1.
func (c *constants) value(t *testing.T, name string) any {
	t.Helper()
	name, less := strings.CutSuffix(name, "-1")
	dot := strings.LastIndexByte(name, '.')
	p, err := c.Import(module + name[:dot])
	if err != nil {
		t.Fatal(err)
	}
	v, ok := p.Scope().Lookup(name[dot+1:]).(*types.Const)
	if !ok || v.Val().Kind() == constant.Unknown {
		t.Fatalf("there is no constant %s with a value", name)
	}
	if v.Val().Kind() == constant.String {
		return constant.StringVal(v.Val())
	}
	n, exact := constant.Float64Val(constant.ToFloat(v.Val()))
	if !exact {
		t.Fatalf("the value of %s is not a number: %s", name, v.Val())
	}
	if less {
		n--
	}
	return n
}

// isConstant reports whether a word is the name of a constant of this module.
func isConstant(word string) bool {
	return strings.HasPrefix(word, "spec.") || strings.HasPrefix(word, "runtime/")
}
