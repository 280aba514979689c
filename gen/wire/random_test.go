package wire_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
	"pgregory.net/rapid"

	"github.com/topogen/topogen/gen/wire"
	"github.com/topogen/topogen/internal/test/speed"
)

// known imports the packages that random messages and their codecs import.
var known = sync.OnceValues(func() (importer, error) {
	list, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedExportFile},
		"time", "github.com/topogen/topogen/runtime/wire")
	known := make(importer)
	for _, p := range list {
		known[p.PkgPath] = p.Types
	}
	return known, err
})

type importer map[string]*types.Package

func (i importer) Import(path string) (*types.Package, error) {
	if p := i[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not among the imports", path)
}

// randomTypes declares types that may contain each other.
type randomTypes struct {
	t     *rapid.T
	count int
}

const randomHead = `package random

import "time"

var _ time.Time

type Binary struct{ c chan int }

func (Binary) AppendBinary(b []byte) ([]byte, error) { return b, nil }
func (*Binary) UnmarshalBinary([]byte) error         { return nil }

type Text struct{ f func() }

func (*Text) MarshalBinary() ([]byte, error) { return nil, nil }
func (*Text) UnmarshalBinary([]byte) error   { return nil }

type Generic[A any, B comparable] struct {
	One  A
	Many map[B][]A
	Self *Generic[A, B]
}

type Key struct {
	A string
	B [2]int
	C Enum
}

type Enum uint8

`

func (r *randomTypes) source() string {
	var b strings.Builder
	b.WriteString(randomHead)
	r.count = rapid.IntRange(1, 6).Draw(r.t, "types")
	for i := range r.count {
		fmt.Fprintf(&b, "type T%d ", i)
		if rapid.IntRange(0, 3).Draw(r.t, "struct") > 0 {
			b.WriteString(r.structure(i, 3) + "\n")
		} else {
			b.WriteString(r.any(i, 3) + "\n")
		}
	}
	return b.String()
}

func (r *randomTypes) structure(below, depth int) string {
	fields := []string{"struct {"}
	for i := range rapid.IntRange(0, 5).Draw(r.t, "fields") {
		fields = append(fields, fmt.Sprintf("%c%d %s", "Ff"[i%2], i, r.any(below, depth)))
	}
	return strings.Join(append(fields, "}"), "\n")
}

var randomBasics = strings.Fields("bool int int8 int32 rune uint byte uint16 uintptr float32 float64 complex64 complex128 string " +
	"[]byte [3]byte []Enum [0]int Enum Key Binary Text time.Time time.Duration struct{} struct{A,B*int}")

// any is a random type that contains by value only types with an index less than below.
func (r *randomTypes) any(below, depth int) string {
	kind := rapid.IntRange(0, 9).Draw(r.t, "kind")
	if depth == 0 {
		kind = 0
	}
	switch depth--; kind {
	case 3:
		return "*" + r.any(r.count, depth)
	case 4:
		return "[]" + r.any(r.count, depth)
	case 5:
		return fmt.Sprintf("[%d]%s", rapid.IntRange(0, 3).Draw(r.t, "length"), r.any(below, depth))
	case 6:
		return "map[" + r.key() + "]" + r.any(r.count, depth)
	case 7:
		return r.structure(below, depth)
	case 8:
		if below > 0 {
			return fmt.Sprintf("T%d", rapid.IntRange(0, below-1).Draw(r.t, "other"))
		}
	case 9:
		return "Generic[" + rapid.SampledFrom(randomBasics).Draw(r.t, "argument") + ", " + r.key() + "]"
	}
	return rapid.SampledFrom(randomBasics).Draw(r.t, "basic")
}

func (r *randomTypes) key() string {
	return rapid.SampledFrom([]string{"string", "int", "bool", "float64", "[2]string", "Key", "Enum", "time.Duration", "[4]byte"}).Draw(r.t, "key")
}

// TestRandomTypesCompile checks that the codecs of messages without problems compile.
func TestRandomTypesCompile(t *testing.T) {
	speed.Checks(t, 20, 100, 1000)
	known, err := known()
	if err != nil {
		t.Fatal(err)
	}
	refused, made := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := &randomTypes{t: t}
		source := r.source()
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "random.go", source, 0)
		if err != nil {
			t.Fatalf("%v\n%s", err, source)
		}
		config := types.Config{Importer: known}
		pkg, err := config.Check("example.com/random", fset, []*ast.File{file}, nil)
		if err != nil {
			t.Skip(err) // a type that holds itself
		}
		var inputs []wire.Input
		for i := range r.count {
			name := fmt.Sprintf("T%d", i)
			inputs = append(inputs, wire.Input{Name: name, Type: pkg.Scope().Lookup(name).Type()})
		}
		schema, problems := wire.Build(pkg, inputs)
		schema, numbers, wrong := wire.Assign(schema, nil)
		for _, p := range wrong {
			t.Fatal(p)
		}
		if _, again, wrong := wire.Assign(schema, numbers); len(wrong) > 0 || string(again) != string(numbers) {
			t.Fatalf("%v\n%s", wrong, again)
		}
		for _, p := range problems {
			if !strings.HasPrefix(p.Message, "a channel") && !strings.HasPrefix(p.Message, "a function") {
				t.Fatalf("%s\n%s", p, source)
			}
		}
		refused += len(problems)
		made += len(schema.Messages)
		states := make(map[string]bool) // every second root is a state, and every fourth root is also sent
		for i := 0; i < len(schema.Roots); i += 2 {
			states[schema.Roots[i].Name] = i%4 == 0
		}
		for _, bounded := range []bool{false, true} {
			text := render(t, pkg.Name(), &schema, wire.Names{Top: plainNames.Top, Local: plainNames.Local, Bounded: bounded, States: states})
			codecs, err := parser.ParseFile(fset, "codecs.go", text, 0)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if _, err := config.Check("example.com/random", fset, []*ast.File{file, codecs}, nil); err != nil {
				t.Fatalf("%v\n%s\n%s", err, source, text)
			}
		}
	})
	t.Logf("%d messages, %d problems", made, refused)
}
