package bind

import (
	"fmt"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// configuration turns with: into a literal of the type that the constructor takes. It
// reports values that do not fit and then returns nil.
func (b *binder) configuration(s *subject, f *types.Func, t types.Type) *plan.Literal {
	elem, pointer := t, false
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		elem, pointer = p.Elem(), true
	}
	if _, ok := elem.Underlying().(*types.Struct); !ok {
		b.unfitNew(s, f, "must take a struct as its configuration, got "+b.typeText(t))
		return nil
	}
	if _, problem := b.typeRef(elem); problem != "" {
		b.unfitNew(s, f, "takes a configuration that cannot be generated: "+problem)
		return nil
	}
	value := s.file.With
	if value == nil {
		value = &spec.Value{Kind: spec.Map}
	}
	before := len(b.findings)
	literal := b.structLiteral(elem, value)
	if len(b.findings) > before {
		return nil
	}
	if pointer {
		return pointerTo(b, t, literal)
	}
	return &literal
}

// misplaced reports a value that does not fit its type.
func (b *binder) misplaced(v *spec.Value, suggestion, format string, args ...any) plan.Literal {
	b.at(finding.Config, spec.Text{At: v.At, Pointer: v.Pointer}, suggestion, format, args...)
	return plan.Literal{}
}

// literal is v as a Go literal of type t.
func (b *binder) literal(t types.Type, v *spec.Value) plan.Literal {
	if isDuration(t) {
		return b.duration(t, v)
	}
	if method := b.decoder(t); method != "" {
		return b.misplaced(v, "", "a configuration must hold plain values, but type %s decodes itself by %s; take a string and convert it", b.typeText(t), method)
	}
	if v.Kind == spec.Null {
		switch t.Underlying().(type) {
		case *types.Pointer, *types.Slice, *types.Map:
			return b.typed(v, plan.Literal{Kind: plan.NilLit}, t)
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return b.scalar(t, u, v)
	case *types.Struct:
		return b.structLiteral(t, v)
	case *types.Pointer:
		return *pointerTo(b, t, b.literal(u.Elem(), v))
	case *types.Slice:
		return b.list(t, u.Elem(), v, -1)
	case *types.Array:
		return b.list(t, u.Elem(), v, u.Len())
	case *types.Map:
		return b.mapLiteral(t, u, v)
	}
	return b.misplaced(v, "", "a configuration cannot hold a value of type %s", b.typeText(t))
}

// typed gives a literal its type.
func (b *binder) typed(v *spec.Value, l plan.Literal, t types.Type) plan.Literal {
	ref, problem := b.typeRef(t)
	if problem != "" {
		return b.misplaced(v, "", "%s", problem)
	}
	l.Type = ref
	return l
}

func pointerTo(b *binder, t types.Type, l plan.Literal) *plan.Literal {
	ref, _ := b.typeRef(t)
	return &plan.Literal{Type: ref, Kind: plan.PointerTo, Items: []plan.Literal{l}}
}

// decoder is the name of the method by which t decodes itself from text or YAML, or "".
func (b *binder) decoder(t types.Type) string {
	for _, name := range []string{"UnmarshalYAML", "UnmarshalText"} {
		if b.method(t, name) != nil {
			return name
		}
	}
	return ""
}

func (b *binder) list(t, elem types.Type, v *spec.Value, length int64) plan.Literal {
	if v.Kind != spec.List {
		return b.misplaced(v, "", "a value of type %s must be a list, got %s", b.typeText(t), spec.Describe(v))
	}
	if length >= 0 && int64(len(v.Items)) != length {
		return b.misplaced(v, "", "a value of type %s must have %d elements, got %d", b.typeText(t), length, len(v.Items))
	}
	l := plan.Literal{Kind: plan.SliceLit}
	for _, item := range v.Items {
		l.Items = append(l.Items, b.literal(elem, item))
	}
	return b.typed(v, l, t)
}

func (b *binder) mapLiteral(t types.Type, m *types.Map, v *spec.Value) plan.Literal {
	if v.Kind != spec.Map {
		return b.misplaced(v, "", "a value of type %s must be a mapping, got %s", b.typeText(t), spec.Describe(v))
	}
	if key, ok := m.Key().Underlying().(*types.Basic); !ok || key.Info()&types.IsString == 0 {
		return b.misplaced(v, "", "the keys of a mapping must be strings, got type %s", b.typeText(t))
	}
	l := plan.Literal{Kind: plan.MapLit}
	for _, f := range v.Fields {
		key := b.literal(m.Key(), &spec.Value{Kind: spec.String, Text: f.Key.Value, At: f.Key.At, Pointer: f.Key.Pointer})
		l.Fields = append(l.Fields, plan.LiteralField{Key: &key, Value: b.literal(m.Elem(), f.Value)})
	}
	// The order of keys in the file must not change the output.
	slices.SortFunc(l.Fields, func(x, y plan.LiteralField) int { return strings.Compare(x.Key.Text, y.Key.Text) })
	return b.typed(v, l, t)
}

// member is a field of a configuration that the file can set.
type member struct {
	key  string // the name in the yaml tag, else the field's name
	tag  bool
	path []*types.Var // through inlined structs
}

// configMembers appends the members of a struct that the file can set.
func (b *binder) configMembers(t types.Type, before []*types.Var, list []member) []member {
	if len(before) > inlineDepthMax {
		return list
	}
	u := t.Underlying().(*types.Struct)
	for i := range u.NumFields() {
		f := u.Field(i)
		text := reflect.StructTag(u.Tag(i)).Get("yaml")
		tag, options, _ := strings.Cut(text, ",")
		if !f.Exported() || text == "-" {
			continue
		}
		path := append(slices.Clone(before), f)
		if _, isStruct := f.Type().Underlying().(*types.Struct); isStruct && slices.Contains(strings.Split(options, ","), "inline") {
			list = b.configMembers(f.Type(), path, list)
			continue
		}
		m := member{key: tag, tag: tag != "", path: path}
		if tag == "" {
			m.key = f.Name()
		}
		list = append(list, m)
	}
	return list
}

const inlineDepthMax = 16 // depth of inline structs; real structs are far below it

// find returns the member for a key: by tag, else by name, ignoring case.
func find(list []member, key string) (int, bool) {
	i := slices.IndexFunc(list, func(m member) bool { return m.tag && m.key == key })
	if i < 0 {
		i = slices.IndexFunc(list, func(m member) bool { return !m.tag && strings.EqualFold(m.key, key) })
	}
	return i, i >= 0
}

func (b *binder) structLiteral(t types.Type, v *spec.Value) plan.Literal {
	if v.Kind != spec.Map && v.Kind != spec.Null {
		return b.misplaced(v, "", "a value of type %s must be a mapping, got %s", b.typeText(t), spec.Describe(v))
	}
	list := b.configMembers(t, nil, nil)
	values := make([]*spec.Value, len(list))
	for _, f := range v.Fields {
		i, ok := find(list, f.Key.Value)
		switch {
		case !ok:
			b.unknownKey(t, f, list)
		case values[i] != nil:
			b.misplaced(&spec.Value{At: f.Key.At, Pointer: f.Key.Pointer}, "", "field %s of %s must be set once", list[i].path[len(list[i].path)-1].Name(), b.typeText(t))
		default:
			values[i] = f.Value
		}
	}
	l := b.typed(v, plan.Literal{Kind: plan.Struct}, t)
	for i, m := range list {
		if values[i] == nil || values[i].Kind == spec.Null {
			continue // the zero value
		}
		at := &l
		for _, f := range m.path[:len(m.path)-1] {
			at = b.inline(at, f, v)
		}
		last := m.path[len(m.path)-1]
		at.Fields = append(at.Fields, plan.LiteralField{Name: last.Name(), Value: b.literal(last.Type(), values[i])})
	}
	return l
}

// inline returns the literal of an inlined struct. The first call makes it.
func (b *binder) inline(at *plan.Literal, f *types.Var, v *spec.Value) *plan.Literal {
	if i := slices.IndexFunc(at.Fields, func(l plan.LiteralField) bool { return l.Name == f.Name() }); i >= 0 {
		return &at.Fields[i].Value
	}
	at.Fields = append(at.Fields, plan.LiteralField{Name: f.Name(), Value: b.typed(v, plan.Literal{Kind: plan.Struct}, f.Type())})
	return &at.Fields[len(at.Fields)-1].Value
}

func (b *binder) unknownKey(t types.Type, f spec.Field, list []member) {
	if strings.HasPrefix(f.Key.Value, "x-") {
		return // keys with this prefix are ignored everywhere
	}
	var names []string
	for _, m := range list {
		if m.tag {
			names = append(names, m.key)
		} else {
			names = append(names, strings.ToLower(m.key[:1])+m.key[1:])
		}
	}
	suggestion := ""
	if near := b.near.Nearest(f.Key.Value, names); near != "" {
		suggestion = fmt.Sprintf("did you mean %q?", near)
	} else if len(names) > 0 {
		suggestion = "it has " + strings.Join(names, ", ")
	}
	b.misplaced(&spec.Value{At: f.Key.At, Pointer: f.Key.Pointer}, suggestion, "%s has no field for the key %q", b.typeText(t), f.Key.Value)
}
