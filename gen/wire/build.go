package wire

import (
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
)

// Input is a message of the topology and its Go type.
type Input struct {
	Name   string
	Type   types.Type
	Sorted bool // the encoding depends only on the value: maps are written in a fixed order
}

const (
	elementBytesMax = 4 << 10 // size in Go; bounds how far the last element may exceed the room
	largeBytes      = 128     // size in Go; larger elements are charged, because two bytes of input can demand one
	arrayLenMax     = 1 << 24 // elements; arrays are always written completely
	messagesMax     = 4 << 10 // only a generic type that instantiates itself endlessly has more
)

// Build makes the schema of messages for codecs in package pkg. A message with problems
// has no codec: its Root.Message is -1.
func Build(pkg *types.Package, inputs []Input) (Schema, []Problem) {
	b := &builder{pkg: pkg, schema: Schema{Package: pkg.Path()}, index: make(map[string]int), names: make(names), faults: make(map[int][]fault), places: make(map[int][]mark)}
	for _, in := range inputs {
		b.schema.Roots = append(b.schema.Roots, Root{Name: in.Name, Message: b.root(in)})
	}
	b.recursion()
	for i, in := range inputs {
		if in.Sorted {
			b.schema.sorted(b.schema.Roots[i].Message)
		}
	}
	var problems []Problem
	var good []Input
	for i, root := range b.schema.Roots {
		found := b.problems(root)
		if len(found) == 0 {
			good = append(good, inputs[i])
		}
		problems = append(problems, found...)
	}
	if len(good) == len(inputs) {
		return b.schema, nil
	}
	schema, _ := Build(pkg, good) // without messages that only bad inputs need
	for i, in := range inputs {
		if i >= len(schema.Roots) || schema.Roots[i].Name != in.Name {
			schema.Roots = slices.Insert(schema.Roots, i, Root{Name: in.Name, Message: -1})
		}
	}
	return schema, problems
}

// builder makes a schema.
type builder struct {
	pkg    *types.Package
	schema Schema
	index  map[string]int // of messages, by type
	names  names
	faults map[int][]fault // by message
	places map[int][]mark  // of the fields of a message
}

// mark is the position of a field of the package. It is invalid for fields of other packages.
type mark struct {
	pos  token.Pos
	name string
}

// fault is a reason why a message cannot be encoded.
type fault struct {
	path             string // path in the message: .Lines[]
	mark             mark
	text, suggestion string
	weak             bool // the package cannot name the type; not reported if the message has another fault
}

// place is the place of a type in a message.
type place struct {
	message int
	path    string // path in the message
	mark    mark   // of the field
	name    string // name for a wrapper message: OrderLines
	key     string // key in the file of numbers, for a struct without a name: Order.Lines
}

func (p place) in(path, name string) place {
	p.path += path
	p.name += name
	return p
}

func (b *builder) fault(at place, suggestion, text string) Elem {
	if at.path == "" && suggestion == leaveOut {
		suggestion = "send a type that can" // the type is the message itself
	}
	b.faults[at.message] = append(b.faults[at.message], fault{path: at.path, mark: at.mark, text: text, suggestion: suggestion})
	return Elem{}
}

// problems lists the problems of all messages that a root contains.
func (b *builder) problems(root Root) (list []Problem) {
	seen := make(map[int]bool)
	var weak []Problem
	var visit func(message int, path string, from mark)
	visit = func(message int, path string, from mark) { // from: the nearest field of the package
		if seen[message] {
			return
		}
		seen[message] = true
		for _, f := range b.faults[message] {
			if !f.mark.pos.IsValid() {
				f.mark = from
			}
			p := Problem{Root: root.Name, Path: path + f.path, Pos: f.mark.pos, Field: f.mark.name, Message: f.text, Suggestion: f.suggestion}
			if f.weak {
				weak = append(weak, p)
			} else {
				list = append(list, p)
			}
		}
		m := &b.schema.Messages[message]
		if m.Form == Pointer {
			visit(m.Of, path, from)
		}
		for i := range m.Fields {
			f, within, from := &m.Fields[i], path, from
			if at := b.places[message]; at != nil && at[i].pos.IsValid() {
				from = at[i]
			}
			if f.Name != "" {
				within += "." + f.Name
			}
			if f.Key != nil && f.Key.Kind == Nested {
				visit(f.Key.Message, within+"[key]", from)
			}
			if f.Label >= Repeated {
				within += "[]"
			}
			if f.Elem.Kind == Nested {
				visit(f.Elem.Message, within, from)
			}
		}
	}
	visit(root.Message, root.Name, mark{})
	if len(list) == 0 {
		return weak
	}
	return list
}

func (b *builder) root(in Input) int {
	t := types.Unalias(in.Type)
	at := place{name: spec.Exported(in.Name), key: spec.Exported(in.Name)}
	var index int
	if p, ok := t.Underlying().(*types.Pointer); ok && b.messageLike(p.Elem()) {
		index = b.pointer(t, p, at)
	} else if b.messageLike(t) {
		index = b.message(t, at)
	} else {
		index = b.value(t, at)
	}
	b.writeAlias(index, in.Type)
	return index
}

// messageLike reports whether t is encoded as a message without a wrapper.
func (b *builder) messageLike(t types.Type) bool {
	_, isSpecial := special(t)
	_, isStruct := t.Underlying().(*types.Struct)
	return isForeign(t) || isStruct && !isSpecial
}

// add adds a message. known reports that the message has been added before.
func (b *builder) add(t types.Type, at place, form Form, suffix string) (index int, known bool) {
	id := strconv.Itoa(int(form)) + types.TypeString(t, nil)
	if _, named := types.Unalias(t).(*types.Named); !named && strings.Contains(id, "struct{") {
		id += " " + at.key + at.name // each struct without a name has its own numbers
	}
	if index, known = b.index[id]; known {
		return index, true
	}
	index = len(b.schema.Messages)
	if index == messagesMax {
		b.fault(at, "", "there are more than "+strconv.Itoa(messagesMax)+" types of messages")
		return at.message, true
	}
	b.index[id] = index
	name := at.name
	if n := nameOf(t); n != "" {
		name = n
	}
	b.schema.Messages = append(b.schema.Messages, Message{Name: b.names.free(name + suffix), Form: form})
	goType, why := plan.TypeOf(types.Unalias(t), b.pkg)
	if why != "" {
		b.faults[index] = append(b.faults[index], fault{mark: at.mark, text: why, suggestion: "declare the field with an exported type, or with an exported alias of this type; if the field is not yours, send a type of your own with a copy of the value", weak: true})
	}
	b.schema.Messages[index].Type = goType
	return index, false
}

// writeAlias names the type of a message by an alias, if t is an alias that the package may use
// and the package cannot name the type itself, for example because it is in an internal package.
func (b *builder) writeAlias(index int, t types.Type) {
	nameless := func(f fault) bool { return f.weak }
	for slices.ContainsFunc(b.faults[index], nameless) {
		alias, ok := t.(*types.Alias)
		if !ok {
			return
		}
		if goType, why := plan.TypeOf(alias, b.pkg); why == "" {
			b.schema.Messages[index].Type = goType
			b.faults[index] = slices.DeleteFunc(b.faults[index], nameless)
		}
		t = alias.Rhs()
	}
}

// names is the set of the names in use.
type names map[string]bool

// free adds name to the set, with a number appended if name is in use, and returns it.
func (n names) free(name string) string {
	free := name
	for i := 2; n[free]; i++ {
		free = name + strconv.Itoa(i)
	}
	n[free] = true
	return free
}

// message is the message of a struct or of a proto.Message.
func (b *builder) message(t types.Type, at place) int {
	written := t
	t = types.Unalias(t)
	if isForeign(t) {
		index, _ := b.add(t, at, Foreign, "")
		b.writeAlias(index, written)
		return index
	}
	index, known := b.add(t, at, Struct, "")
	b.writeAlias(index, written)
	if known {
		return index
	}
	key := at.key
	if named, ok := t.(*types.Named); ok {
		key = types.TypeString(named, b.qualifier)
	}
	name := b.schema.Messages[index].Name
	var fields []Field
	tagged := make(map[int]string)
	s := t.Underlying().(*types.Struct)
	for i := range s.NumFields() {
		f := s.Field(i)
		tag := reflect.StructTag(s.Tag(i)).Get("topo")
		if f.Name() == "_" || tag == "-" {
			continue
		}
		own := f.Pkg() == nil || f.Pkg().Path() == b.pkg.Path()
		at := place{message: index, path: "." + f.Name(), name: name + spec.Exported(f.Name()), key: key + "." + f.Name()}
		if own {
			at.mark = mark{f.Pos(), f.Name()}
		} else if !f.Exported() {
			b.fault(at, "give the type MarshalBinary and UnmarshalBinary, or leave the field that holds it out: `topo:\"-\"`",
				"an unexported field of package "+f.Pkg().Path())
			break // one fault is enough
		}
		field := b.field(f.Type(), at)
		field.Name = f.Name()
		field.Number, field.Tagged = b.number(tag, at)
		if other := tagged[field.Number]; field.Tagged && other != "" {
			b.fault(at, "choose a number that no field ever had", "its tag has the field number "+tag+", and the tag of "+other+" has it too")
		}
		tagged[field.Number] = f.Name()
		fields = append(fields, field)
		b.places[index] = append(b.places[index], at.mark)
	}
	b.schema.Messages[index].Key, b.schema.Messages[index].Fields = key, fields
	return index
}

// value is the wrapper message for a type that is not a message.
func (b *builder) value(t types.Type, at place) int {
	index, known := b.add(t, at, Value, "")
	b.writeAlias(index, t)
	if known {
		return index
	}
	within := place{message: index, mark: at.mark, name: b.schema.Messages[index].Name, key: at.key}
	field := b.field(t, within)
	field.Number = 1
	b.schema.Messages[index].Fields = []Field{field}
	return index
}

// pointer is the message of a pointer to a message, for places where nil needs an encoding.
func (b *builder) pointer(t types.Type, p *types.Pointer, at place) int {
	index, known := b.add(t, at, Pointer, "Pointer")
	b.writeAlias(index, t)
	if !known {
		of := b.message(p.Elem(), at)
		b.schema.Messages[index].Of = of
		b.schema.Messages[index].Large = large(p.Elem())
	}
	return index
}

// number is the number in a field's tag; 0: there is none.
func (b *builder) number(tag string, at place) (number int, tagged bool) {
	if tag == "" {
		return 0, false
	}
	n, err := strconv.Atoi(tag)
	if err != nil || !usable(n) {
		b.fault(at, "", "a field number must be from 1 to "+strconv.Itoa(numberMax)+" without 19000 to 19999, got the tag topo:"+strconv.Quote(tag))
		return 0, false
	}
	return n, true
}

// field finds the label of a type.
func (b *builder) field(t types.Type, at place) Field {
	_, isSpecial := special(t)
	_, isBytes := bytesKind(t.Underlying())
	if isSpecial || isBytes {
		return Field{Elem: b.elem(t, at)}
	}
	if named, ok := types.Unalias(t).(*types.Named); ok { // the parts have the same names at every place that uses the named type
		at.name, at.key = nameOf(named), types.TypeString(named, b.qualifier)
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		b.bounded(u.Elem(), at)
		return Field{Label: Optional, Elem: b.elem(u.Elem(), at), Large: large(u.Elem())}
	case *types.Slice:
		b.bounded(u.Elem(), at)
		return Field{Label: Repeated, Elem: b.elem(u.Elem(), at.in("[]", "Item")), Large: large(u.Elem())}
	case *types.Array:
		if u.Len() > arrayLenMax {
			return Field{Elem: b.fault(at, "use a slice", "the array has more than "+strconv.Itoa(arrayLenMax)+" elements")}
		}
		return Field{Label: Array, Elem: b.elem(u.Elem(), at.in("[]", "Item"))}
	case *types.Map:
		b.bounded(u.Elem(), at)
		b.bounded(u.Key(), at)
		key := b.elem(u.Key(), at.in("[key]", "Key"))
		if key.Kind == Nested && b.schema.Messages[key.Message].Form == Pointer || isPointer(u.Key()) {
			b.fault(at.in("[key]", ""), "use the type that it points to, if that type can be a key", "a pointer cannot be a key: the other process has another pointer")
		}
		return Field{Label: Map, Key: &key, Elem: b.elem(u.Elem(), at.in("[]", "Item")), Large: large(u.Key(), u.Elem())}
	}
	return Field{Elem: b.elem(t, at)}
}

// bounded refuses types that are too large, because two bytes of input can demand such a value.
func (b *builder) bounded(t types.Type, at place) {
	if size(t, elementBytesMax) > elementBytesMax {
		b.fault(at, "use slices in place of arrays",
			"an element must take at most "+strconv.Itoa(elementBytesMax)+" bytes of memory, because two bytes of a hostile message can demand it")
	}
}

// large reports whether a value takes much more memory than two bytes of input.
func large(together ...types.Type) bool {
	sum := int64(0)
	for _, t := range together {
		sum += size(t, largeBytes)
	}
	return sum > largeBytes
}

// elem is the element for a type. A type that cannot be an element gets a wrapper message.
func (b *builder) elem(t types.Type, at place) Elem {
	if e, ok := special(t); ok {
		return e
	}
	if b.messageLike(t) {
		return Elem{Kind: Nested, Message: b.message(t, at)}
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if e, ok := basics[u.Kind()]; ok {
			return e
		}
		if u.Kind() == types.Invalid {
			return b.fault(at, "", "the type is not valid")
		}
		return b.fault(at, leaveOut, "an unsafe."+u.Name()+" means nothing in another process")
	case *types.Pointer:
		if b.messageLike(u.Elem()) {
			b.bounded(u.Elem(), at)
			return Elem{Kind: Nested, Message: b.pointer(t, u, at)}
		}
		return Elem{Kind: Nested, Message: b.value(t, at)}
	case *types.Slice, *types.Array, *types.Map:
		if kind, ok := bytesKind(u); ok {
			return Elem{Kind: kind}
		}
		return Elem{Kind: Nested, Message: b.value(t, at)}
	case *types.Chan:
		return b.fault(at, leaveOut, "a channel cannot leave the process")
	case *types.Signature:
		return b.fault(at, leaveOut, "a function cannot leave the process")
	case *types.Interface:
		return b.fault(at, "use a struct with a pointer for each type that it can hold", "an interface does not say which type to read")
	}
	return b.fault(at, leaveOut, "a "+types.TypeString(t, b.qualifier)+" cannot be encoded")
}

const leaveOut = "leave the field out: `topo:\"-\"`"

// recursion finds the messages that can contain themselves, and the messages that can
// contain large values.
func (b *builder) recursion() {
	next := make([][]int, len(b.schema.Messages))
	large := make([]bool, len(next))
	for i := range b.schema.Messages {
		m := &b.schema.Messages[i]
		next[i] = m.holds()
		large[i] = m.Large || slices.ContainsFunc(m.Fields, func(f Field) bool { return f.Large })
	}
	for i := range next {
		seen := make([]bool, len(next))
		stack := slices.Clone(next[i])
		charged := large[i]
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if !seen[at] {
				seen[at] = true
				charged = charged || large[at]
				stack = append(stack, next[at]...)
			}
		}
		b.schema.Messages[i].Recursive, b.schema.Messages[i].Charged = seen[i], charged
	}
}
