package bind

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestOversized measures what doubles forty times, each in its own way. The type
// checker would be busy with any of them for good.
func TestOversized(t *testing.T) {
	for name, c := range map[string]struct{ head, step string }{
		"fields":       {"type T0 struct{}", "type T%d struct{ a, b T%d }"},
		"aliases":      {"type T0 struct{}", "type T%d = struct{ a, b T%[2]d }"},
		"pointers":     {"type T0 struct{}", "type T%d = func(*T%[2]d, ...T%[2]d)"},
		"arrays":       {"type T0 int", "type T%d [2]struct{ a, b T%[2]d }"},
		"interfaces":   {"type T0 interface{ A() }", "type T%d = map[interface{ T%[2]d }]chan T%[2]d"},
		"one argument": {"type T0 int; type P[A any] struct{ a, b A }", "type T%d = P[T%[2]d]"},
		"arguments":    {"type T0 int; type P[A, B any] struct{}", "type T%d = P[T%[2]d, T%[2]d]"},
		"itself":       {"type T0[A any] struct { next *T0[[]A] }; type T T0[int]", "// %d %d"},
		"generic":      {"type T0[A any] struct{}; type Q[A, B any] struct { a A; b B }; type T T40[int]", "type T%d[A any] struct { x T%[2]d[Q[A, A]] }"},
		"constants":    {`const T0 = "text"`, "const T%d = T%[2]d + T%[2]d"},
	} {
		var text strings.Builder
		fmt.Fprintf(&text, "package p\n%s\n", c.head)
		for i := 1; i <= 40; i++ {
			fmt.Fprintf(&text, c.step+"\n", i, i-1)
		}
		if id := oversized(parseAll(t, text.String())); id == nil || !strings.HasPrefix(id.Name, "T") {
			t.Errorf("%s: %v", name, id)
		}
	}
	for name, depth := range map[string]int{"one deep": typePartsMax + 1, "all levels": 4000} {
		text := "package p\ntype P[A any] struct{}\nvar V " + strings.Repeat("P[", depth) + "int" + strings.Repeat("]", depth)
		if id := oversized(parseAll(t, text)); id == nil || id.Name != "V" {
			t.Errorf("%s: %v", name, id)
		}
	}
}

// TestNotOversized has what looks endless and is not, or is for others to report.
func TestNotOversized(t *testing.T) {
	for _, text := range []string{
		"type List[T any] struct { next *List[T]; items []T }; type L = List[List[int]]",
		"type Tree struct { left, right *Tree; m map[string]Tree; s []Tree; f func(Tree) Tree }",
		"type A = B; type B = A; type C struct { C; D }; type D struct { C; C }",
		"type S[T ~[]E, E any] struct { t T; e E }; var _ = S[[]int, int]{}.t[1]",
		"const a, b = 1; const ( c = iota; d; e )",
		"type T struct{}; func f() { type T = struct { a, b T } }",
		"type " + strings.Repeat("T struct{ a, b int; c [1000]string }; type ", 3000) + "U int",
	} {
		if id := oversized(parseAll(t, "package p\n"+text)); id != nil {
			t.Errorf("%.80s: %v", text, id)
		}
	}
}

func parseAll(t *testing.T, text string) []*ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return []*ast.File{file}
}
