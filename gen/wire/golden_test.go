package wire_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/wire"
	"golang.org/x/tools/go/packages"
)

var update = flag.Bool("update", false, "write what comes out in place of comparing it")

// plainNames are the names in a package without collisions.
var plainNames = wire.Names{
	Top:   func(name string) string { return name },
	Local: func(name string) string { return name },
}

// sample is the package with the golden codecs and their tests.
const sample = "../../generated_test/wire"

// named is a message, and its type as a file of the package writes it.
type named struct{ name, expr string }

// roots are the messages of a topology that has the sample.
func roots() []named {
	list := same("Order", "Scalars", "Lists", "Maps", "Pointers", "Nested", "Node", "Numbered", "Sparse")
	return append(list, named{"Text", "Name"}, named{"Page", "*other.Page[*Line]"}, named{"Plain", "map[string][]Order"})
}

// same lists messages with the names of types of the package.
func same(names ...string) (list []named) {
	for _, name := range names {
		list = append(list, named{name, name})
	}
	return list
}

// load finds the types of messages in the package in dir.
func load(t *testing.T, dir string, messages []named) (*types.Package, []wire.Input) {
	t.Helper()
	list, err := packages.Load(&packages.Config{Dir: dir, Mode: packages.LoadSyntax}, ".")
	if err != nil {
		t.Fatal(err)
	}
	p := list[0]
	var inputs []wire.Input
	for _, m := range messages {
		var found types.TypeAndValue
		for _, file := range p.Syntax { // one of them imports what the type mentions
			if found, err = types.Eval(p.Fset, p.Types, file.Name.End(), m.expr); err == nil {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, wire.Input{Name: m.name, Type: found.Type})
	}
	return p.Types, inputs
}

// TestSample makes the codecs, the numbers and the .proto of the sample.
func TestSample(t *testing.T) {
	pkg, inputs := load(t, sample, roots())
	schema, problems := wire.Build(pkg, inputs)
	file := filepath.Join(sample, wire.FileName("topology.yml"))
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	schema, numbers, more := wire.Assign(schema, old)
	for _, p := range append(problems, more...) {
		t.Error(p)
	}
	compare(t, file, numbers)
	compare(t, filepath.Join(sample, "codecs_gen.go"), render(t, pkg.Name(), &schema, plainNames))
	compare(t, filepath.Join(sample, "description.txt"), []byte(schema.Describe(
		wire.Part{Kind: "state", Root: "Maps"}, wire.Part{Kind: "update", Root: "Page"}, wire.Part{Kind: "result", Root: "Text"})))
	compare(t, filepath.Join(sample, "types.txt"), []byte(strings.Join(schema.Types([]string{"Maps", "Page", "Text"}), "\n")+"\n"))
	compare(t, filepath.Join(sample, "messages.proto"), wire.Proto(&schema, wire.ProtoOptions{Topology: "messages"}))
}

// TestOddNames checks that codecs use the names that the caller chooses, to avoid names of the
// package.
func TestOddNames(t *testing.T) {
	pkg, inputs := load(t, sample+"/odd", same("b", "r", "depth"))
	schema, problems := wire.Build(pkg, inputs)
	schema, _, more := wire.Assign(schema, nil)
	for _, p := range append(problems, more...) {
		t.Error(p)
	}
	taken := map[string]bool{"appendB": true, "consumeB": true} // declared by the package
	top := func(name string) string {
		for taken[name] {
			name += "2"
		}
		taken[name] = true
		return name
	}
	local := func(name string) string {
		for slices.Contains(schema.Mentions(), name) {
			name += "_"
		}
		return name
	}
	compare(t, sample+"/odd/codecs_gen.go", render(t, pkg.Name(), &schema, wire.Names{Top: top, Local: local}))
}

// TestRefused checks that everything that cannot be encoded is reported with its path, and that
// all other messages have codecs.
func TestRefused(t *testing.T) {
	dir := sample + "/refused"
	pkg, inputs := load(t, dir, same("Good", "Plain", "Deep", "Again", "Keys", "Large", "Tags", "Foreign", "Half", "Promoted"))
	inputs = slices.Insert(inputs, 2, wire.Input{Name: "Channel", Type: types.NewChan(types.SendRecv, types.Typ[types.Int])})
	schema, problems := wire.Build(pkg, inputs)
	var text bytes.Buffer
	for _, p := range problems {
		fmt.Fprintln(&text, p)
		if p.Root == "" || p.Message == "" {
			t.Errorf("%+v lacks something", p)
		}
	}
	compare(t, dir+"/problems.txt", text.Bytes())
	if len(schema.Roots) != len(inputs) || len(schema.Messages) != 1 {
		t.Errorf("%d roots and %d messages are left, want %d and 1", len(schema.Roots), len(schema.Messages), len(inputs))
	}
	for i, root := range schema.Roots {
		if good := root.Name == "Good"; root.Name != inputs[i].Name || good != (root.Message >= 0) {
			t.Errorf("root %d is %+v", i, root)
		}
	}
	given, _ := wire.Emit(&schema, plainNames)
	if given[0] != (wire.Codec{Append: "appendGood", Consume: "consumeGood"}) || given[1] != (wire.Codec{}) {
		t.Errorf("the codecs are %v", given)
	}
}

// TestSchemaIsPlain checks that a schema can be hashed, with the same hash each time.
func TestSchemaIsPlain(t *testing.T) {
	plain(t, reflect.TypeFor[wire.Schema](), make(map[reflect.Type]bool))
	var schemas [2]wire.Schema
	for i := range schemas {
		pkg, inputs := load(t, sample, roots())
		schemas[i], _ = wire.Build(pkg, inputs)
		schemas[i], _, _ = wire.Assign(schemas[i], nil)
	}
	if !reflect.DeepEqual(schemas[0], schemas[1]) {
		t.Error("two schemas of the same messages differ")
	}
}

func plain(t *testing.T, typ reflect.Type, seen map[reflect.Type]bool) {
	if seen[typ] {
		return
	}
	seen[typ] = true
	switch typ.Kind() {
	case reflect.Struct:
		for i := range typ.NumField() {
			plain(t, typ.Field(i).Type, seen)
		}
	case reflect.Slice, reflect.Pointer:
		plain(t, typ.Elem(), seen)
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64:
	default:
		t.Errorf("%s has no canonical encoding", typ)
	}
}

// failer is a test of any kind.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// render is the Go file of a schema.
func render(t failer, pkg string, schema *wire.Schema, names wire.Names) []byte {
	t.Helper()
	f := jen.NewFilePathName(schema.Package, pkg)
	f.HeaderComment("Code generated by go test ./gen/wire -update. DO NOT EDIT.")
	f.NoFormat = true
	_, declarations := wire.Emit(schema, names)
	for _, d := range declarations {
		f.Add(d).Line()
	}
	var text bytes.Buffer
	if err := f.Render(&text); err != nil {
		t.Fatal(err)
	}
	source, err := format.Source(text.Bytes())
	if err != nil {
		t.Fatalf("%v\n%s", err, text.Bytes())
	}
	return source
}

func compare(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what would be written now (%v); see go test ./gen/wire -update", file, err)
	}
}
