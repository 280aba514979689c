package bind

import (
	"slices"
	"strings"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
)

// ScaffoldHint ends the suggestion of a finding that --scaffold can fix.
const ScaffoldHint = ", or run topogen build --scaffold"

// Struct is a struct type that is not declared yet.
type Struct struct {
	Name    string
	Fields  []string // each field with name, type and tag
	Imports []string // imports that the fields need
}

// String returns the declaration on one line.
func (s Struct) String() string {
	text := "type " + s.Name + " struct{"
	if len(s.Fields) > 0 {
		text += " " + strings.Join(s.Fields, "; ") + " "
	}
	return text + "}"
}

// Constructor is an undeclared function that new: names.
type Constructor struct {
	Name      string
	Signature string   // func NewParser(with ParserConfig) (*Parser, error)
	Result    string   // *Parser
	Config    []Struct // types that must be declared for the parameter, its own type first
}

// message is a struct with the fields that the keys and ids of its edges need.
func (b *binder) message(name string) Struct {
	if b.keyed == nil {
		b.keyed = b.keyFields()
	}
	s := Struct{Name: name}
	if root := b.keyed[name]; root != nil {
		for _, f := range root.fields {
			s.Fields = append(s.Fields, f.name+" "+f.text())
		}
	}
	return s
}

// keyFields finds what the keys and ids of edges need in types of the package.
func (b *binder) keyFields() map[string]*keyField {
	fields := make(map[string]*keyField)
	add := func(e *plan.Edge, path string) {
		basic := map[plan.RouteKind]string{plan.Key: "string", plan.ID: "int", plan.ToNode: "string"}[e.Route]
		if basic == "" || e.Type.Kind != plan.Named || e.Type.Import != "" {
			return
		}
		if fields[e.Type.Name] == nil {
			fields[e.Type.Name] = new(keyField)
		}
		fields[e.Type.Name].add(path, basic)
	}
	text := func(e *plan.Edge, s *plan.Selector) {
		if s == nil || e.Type.Kind != plan.Named || e.Type.Import != "" {
			return
		}
		if fields[e.Type.Name] == nil {
			fields[e.Type.Name] = new(keyField)
		}
		fields[e.Type.Name].add(strings.Join(s.Access, "."), "string")
	}
	for i := range b.plan.Edges {
		if e := &b.plan.Edges[i]; e.Durable != nil {
			text(e, e.Durable.ID)
			if e.Durable.Limit != nil {
				text(e, e.Durable.Limit.Per)
			}
		}
	}
	for i := range b.topology.Edges { // only edges of the file have keys, not those for replies and dead letters
		if e := &b.plan.Edges[i]; b.plan.Processors[e.To].Machine == nil {
			add(e, b.topology.Edges[i].Route.Field.Value)
		}
	}
	for i := range b.plan.Processors {
		if m := b.plan.Processors[i].Machine; m != nil && m.Keyed != nil {
			add(m.Keyed, b.topology.Processors[i].Machine.Route.Field.Value)
		}
	}
	return fields
}

// keyField is a field on the path of a key: a basic type, or a struct of fields.
type keyField struct {
	name, basic string
	fields      []*keyField
}

const keyFieldsMax = 16 // few messages have even two keys, and a line has no room for more

func (f *keyField) add(path, basic string) {
	name, rest, deeper := strings.Cut(path, ".")
	i := slices.IndexFunc(f.fields, func(g *keyField) bool { return g.name == name })
	if i < 0 {
		if len(f.fields) == keyFieldsMax {
			return
		}
		i = len(f.fields)
		f.fields = append(f.fields, &keyField{name: name, basic: basic})
	}
	if deeper {
		f.fields[i].add(rest, basic)
	}
}

func (f *keyField) text() string {
	if len(f.fields) == 0 {
		return f.basic
	}
	var fields []string
	for _, g := range f.fields {
		fields = append(fields, g.name+" "+g.text())
	}
	return "struct{ " + strings.Join(fields, "; ") + " }"
}

// canonicalNew is the suggested constructor. It takes a struct for with: if there is
// one, and returns an error. If no struct fits, it reports that and returns nil.
func (b *binder) canonicalNew(s *subject) *Constructor {
	c := &Constructor{Name: s.file.New.Value, Result: "*" + s.Type.Name}
	param := ""
	if with := s.file.With; with != nil {
		config := s.Type.Name + "Config"
		if b.declared[config] == nil {
			types := configTypes{binder: b}
			if config = types.declare(config, []*spec.Value{with}); types.misfit {
				return nil
			}
			c.Config = types.list
		}
		param = "with " + config
	}
	c.Signature = "func " + c.Name + "(" + param + ") (" + c.Result + ", error)"
	return c
}

// suggestion declares the function, and the type that it takes.
func (c *Constructor) suggestion() string {
	text := "write " + c.Signature
	if len(c.Config) > 0 {
		text += ", with " + c.Config[0].String()
	}
	return text
}
