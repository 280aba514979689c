package spec

import (
	"errors"
	"go/ast"
	"go/parser"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseType(t *testing.T) {
	named := func(path, name string, args ...*TypeExpr) *TypeExpr {
		t := &TypeExpr{Import: path, Name: name}
		for _, a := range args {
			t.Args = append(t.Args, *a)
		}
		return t
	}
	for expr, want := range map[string]*TypeExpr{
		"Order":                       named("", "Order"),
		"order":                       named("", "order"),
		"string":                      named("", "string"),
		"Größe":                       named("", "Größe"),
		"example.com/m.Ärger":         named("example.com/m", "Ärger"),
		"time.Time":                   named("time", "Time"),
		"example.com/shop/model.Page": named("example.com/shop/model", "Page"),
		"gopkg.in/yaml.v3.Node":       named("gopkg.in/yaml.v3", "Node"),
		"example.com/a~b/c+d/e_f.T":   named("example.com/a~b/c+d/e_f", "T"),
		"*example.com/m.Page[string]": {Kind: PointerType, Elem: named("example.com/m", "Page", named("", "string"))},
		"[]byte":                      {Kind: SliceType, Elem: named("", "byte")},
		"[16]byte":                    {Kind: ArrayType, Len: 16, Elem: named("", "byte")},
		"[0]T":                        {Kind: ArrayType, Elem: named("", "T")},
		"map[string][]*T":             {Kind: MapType, Key: named("", "string"), Elem: &TypeExpr{Kind: SliceType, Elem: &TypeExpr{Kind: PointerType, Elem: named("", "T")}}},
		"Pair[int, Pair[a/b.C, T]]":   named("", "Pair", named("", "int"), named("", "Pair", named("a/b", "C"), named("", "T"))),
	} {
		got, err := ParseType(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", expr, diff)
		}
		if got.String() != expr {
			t.Errorf("%s becomes %s", expr, got)
		}
	}
}

func TestParseTypeRefuses(t *testing.T) {
	for _, expr := range []string{
		"", " ", "Order ", " Order", "Order;", "a b", "*", "[]", "[", "[]]", "[-1]T", "[1_0]T", "[01]T", "[99999999999]T", "map[T", "map", "map[]T",
		"chan int", "<-chan int", "func()", "struct{}", "interface{}", "interface { M() }", "(Order)", "...T",
		"T[", "T[]", "T[int", "T[int,]", "T[int]x", "string[int]", "T[int][int]",
		"./a.T", "../a.T", "/a.T", "a//b.T", "a/.T", "a/..b.T", "a/b", "a/b.", ".T", "a/b..T", "-a/b.T", "a./b.T", "https://a/b.T", "a\\b.T", "a b/c.T",
		"a/b.t", "a/b._T", "a/b.1T", "C.int", "unsafe.Pointer", "_", "1T", "func", "nil", "comparable", "len", "größe/m.T", "example.com/é.T", "example.com/m.größe", "Gro\u0308\u00dfe", "A\u200bB", "\u0661T", "\xffT",
		"T\n", "T//x", "T/*x*/", "T`x`", "\"fmt\".T", "T;import \"os\"", "a/b.T\n//go:linkname x y", strings.Repeat("*", 100) + "T", strings.Repeat("a", typeMax+1),
	} {
		got, err := ParseType(expr)
		var typeError *TypeError
		if !errors.As(err, &typeError) {
			t.Errorf("%q is accepted as %v", expr, got)
			continue
		}
		if typeError.Start < 0 || typeError.End < typeError.Start || typeError.Message == "" {
			t.Errorf("%q: the error is incomplete: %+v", expr, typeError)
		}
	}
}

// FuzzParseType checks that an accepted expression is a Go type and nothing else.
func FuzzParseType(f *testing.F) {
	for _, seed := range []string{"Order", "*a/b.Page[string]", "map[string][16]byte", "T[int, U[V]]", "func()", "T;x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		parsed, err := ParseType(expr)
		if err != nil {
			return
		}
		again, err := ParseType(parsed.String())
		if err != nil || cmp.Diff(parsed, again) != "" {
			t.Fatalf("%q becomes %q, which differs: %v", expr, parsed, err)
		}
		code, err := parser.ParseExpr(parsed.Format(func(string) string { return "p" }))
		if err != nil {
			t.Fatalf("%q is not Go: %v", parsed.Format(func(string) string { return "p" }), err)
		}
		ast.Inspect(code, func(n ast.Node) bool {
			switch n.(type) {
			case nil, *ast.Ident, *ast.StarExpr, *ast.ArrayType, *ast.MapType, *ast.IndexExpr, *ast.IndexListExpr, *ast.SelectorExpr, *ast.BasicLit:
			default:
				t.Fatalf("%q contains %T", expr, n)
			}
			return true
		})
	})
}

// TestTypeIn checks that In removes the import of the package itself and does not change the
// original type.
func TestTypeIn(t *testing.T) {
	const expr = "map[a/b.K][]*a/b.Page[a/b.T, c.T]"
	parsed, err := ParseType(expr)
	if err != nil {
		t.Fatal(err)
	}
	if got := parsed.In("a/b").String(); got != "map[K][]*Page[T, c.T]" {
		t.Error(got)
	}
	if got := parsed.String(); got != expr {
		t.Errorf("In changed the original to %s", got)
	}
	if got := parsed.Imports(nil); !slices.Equal(got, []string{"a/b", "a/b", "a/b", "c"}) {
		t.Error(got)
	}
}
