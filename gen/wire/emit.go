package wire

import (
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
)

// Names chooses names in the package of the codecs.
type Names struct {
	// Top returns a free name at package level.
	Top func(name string) string
	// Local returns the name of a variable that shadows no name in Schema.Mentions.
	Local func(name string) string
	// Bounded gives functions a limit on the bytes that they append, if the encoding of
	// a message can be far larger than the message in memory.
	Bounded bool
	// States has the names of the roots that are states of state machines. The value is
	// true if the root is also a message, an update or a result.
	States map[string]bool
}

// Codec has the names of a root's functions:
//
//	func appendOrder(b []byte, m *Order) ([]byte, error)
//	func consumeOrder(b []byte, m *Order) error
//
// A bounded codec fails once b is longer than limit:
//
//	func appendOrder(b []byte, m *Order, limit int) ([]byte, error)
type Codec struct {
	Append, Consume string
	Bounded         bool
	State           *Codec // the codec without a limit for large elements, if the root is a state
}

// Emit generates the functions of a schema. Codecs are in the order of its Roots. The
// codec of a root that cannot be encoded is empty. The file that
// contains a declaration resolves its imports.
func Emit(s *Schema, names Names) (codecs []Codec, declarations []jen.Code) {
	e := &emitter{schema: s, names: names, of: make([]Codec, len(s.Messages)), grows: make([]bool, len(s.Messages))}
	if names.Bounded {
		e.grows = s.growing()
	}
	e.b, e.m, e.r, e.err, e.k, e.v = names.Local("b"), names.Local("m"), names.Local("r"), names.Local("err"), names.Local("k"), names.Local("v")
	e.p, e.i, e.at, e.entry, e.depth, e.room = names.Local("p"), names.Local("i"), names.Local("at"), names.Local("entry"), names.Local("depth"), names.Local("room")
	e.limit, e.order = names.Local("limit"), names.Local("order")
	roots := make(map[int]bool)
	for _, root := range s.Roots {
		roots[root.Message] = true
	}
	for i := range s.Messages {
		e.of[i] = Codec{Append: names.Top("append" + s.Messages[i].Name), Consume: names.Top("consume" + s.Messages[i].Name)}
	}
	codecs = make([]Codec, len(s.Roots))
	entries := make(map[string]Codec)
	for i, root := range s.Roots {
		if root.Message < 0 {
			continue
		}
		sent, isState := names.States[root.Name]
		if sent || !isState {
			codecs[i] = e.codec(entries, root.Message, false)
		}
		if isState {
			codec := e.codec(entries, root.Message, true)
			codecs[i].State = &codec
		}
	}
	for i := range s.Messages {
		e.appendMessage(i)
		e.consumeMessage(i)
	}
	return codecs, e.declarations
}

// emitter writes the functions of a schema. Its string fields are names of variables.
type emitter struct {
	schema       *Schema
	names        Names
	of           []Codec // by message
	grows        []bool  // by message: whether its append function has a limit
	declarations []jen.Code
	current      *Message

	b, m, r, err, k, v, p, i, at, entry, depth, room, limit, order string
}

// code joins pieces of Go: strings are used unchanged, and a jen.Code may import packages.
func code(pieces ...any) *jen.Statement {
	s := &jen.Statement{}
	for _, p := range pieces {
		switch p := p.(type) {
		case string:
			s.Id(p)
		case jen.Code:
			s.Add(p)
		}
	}
	return s
}

// rt is a name from runtime/wire.
func rt(name string) *jen.Statement { return jen.Qual(runtimePath, name) }

// function adds a declaration.
func (e *emitter) function(comment, name string, params, results []jen.Code, body ...jen.Code) {
	// Comment and Line would leave a space at the end of the comment.
	f := jen.Id("// " + name + " " + comment + "\n").Func().Id(name).Params(params...)
	if len(results) == 1 {
		f.Add(results[0])
	} else {
		f.Params(results...)
	}
	e.declarations = append(e.declarations, f.Block(body...))
}

// params are the parameters of a message's functions, without the limit.
func (e *emitter) params(m *Message, inner bool) []jen.Code {
	list := []jen.Code{jen.Id(e.b + " []byte"), code(e.m+" *", TypeCode(m.Type))}
	if inner && m.Recursive {
		list = append(list, jen.Id(e.depth+" int"))
	}
	if inner && m.Charged {
		list = append(list, code(e.room+" *", rt("Room")))
	}
	return list
}

func (e *emitter) results() []jen.Code {
	return []jen.Code{jen.Id("_ []byte"), jen.Id(e.err + " error")}
}

// appendParams are the parameters of a message's append function.
func (e *emitter) appendParams(index int, inner bool) []jen.Code {
	list := e.params(&e.schema.Messages[index], inner)
	if e.grows[index] {
		list = append(list, jen.Id(e.limit+" int"))
	}
	return list
}

// tooLarge returns from the function if b is longer than the limit.
func (e *emitter) tooLarge(failure jen.Code) jen.Code {
	return code("if len("+e.b+") > "+e.limit+" { return "+e.b+",", failure, "}")
}

// codec returns the codec of a root. If the message can contain itself, or can be large in
// memory, the codec consists of entry functions that begin to count the depth or the room.
// Each entry function is written once; entries has the ones that exist, by name.
func (e *emitter) codec(entries map[string]Codec, index int, state bool) Codec {
	m, c := &e.schema.Messages[index], e.of[index]
	c.Bounded = e.grows[index]
	if !m.Recursive && !m.Charged {
		return c
	}
	suffix := "Whole"
	if state && m.Charged {
		suffix = "State"
	}
	written, ok := entries[c.Append+suffix]
	if !ok {
		written = Codec{Append: e.names.Top(c.Append + suffix), Consume: e.names.Top(c.Consume + suffix), Bounded: c.Bounded}
		entries[c.Append+suffix] = written
		e.whole(index, written, state)
	}
	return written
}

// whole writes the entry functions of a root. For a state the room is not limited.
func (e *emitter) whole(index int, c Codec, state bool) {
	m := &e.schema.Messages[index]
	e.current = &Message{} // the calls are not in a message's function
	appends, consumes := e.callAppend(index, e.b, e.m), e.call(index, e.of[index].Consume, e.b, e.m)
	write, read := []jen.Code{code("return ", appends)}, []jen.Code{code("return ", consumes)}
	switch {
	case m.Charged && state:
		room := code(e.room+" :=", rt("NoRoomLimit"))
		write, read = []jen.Code{room, write[0]}, []jen.Code{room, read[0]}
	case m.Charged:
		write = []jen.Code{
			code(e.at+", "+e.room+" := len("+e.b+"),", rt("Room"), "(0)"),
			code(e.b+", "+e.err+" := ", appends),
			code("return "+e.b+",", rt("Paid"), fmt.Sprintf("(%q, %s, len(%s)-%s, %s)", m.Name, e.room, e.b, e.at, e.err)),
		}
		read = []jen.Code{code(e.room+" :=", rt("RoomFor"), "(len("+e.b+"))"), code("return ", consumes)}
	}
	e.function("appends a message to b.", c.Append, e.appendParams(index, false), []jen.Code{jen.Id("[]byte"), jen.Id("error")}, write...)
	e.function("decodes a message into a zero value.", c.Consume, e.params(m, false), []jen.Code{jen.Id("error")}, read...)
}

// callAppend is a call of a message's append function from the current function.
func (e *emitter) callAppend(index int, b, m string) *jen.Statement {
	c := e.open(index, e.of[index].Append, b, m)
	if e.grows[index] {
		c.Op(", " + e.limit)
	}
	return c.Op(")")
}

// call is a call of a message's function from the current function.
func (e *emitter) call(index int, function string, args ...any) *jen.Statement {
	return e.open(index, function, args...).Op(")")
}

func (e *emitter) open(index int, function string, args ...any) *jen.Statement {
	c := code(function + "(")
	for i, a := range args {
		if i > 0 {
			c.Op(",")
		}
		c.Add(code(a))
	}
	switch {
	case !e.schema.Messages[index].Recursive:
	case e.current.Recursive:
		c.Op(", " + e.depth + " - 1")
	default:
		c.Op(",").Add(rt("DepthMax"))
	}
	switch {
	case !e.schema.Messages[index].Charged:
	case e.current.Charged:
		c.Op(", " + e.room)
	default:
		c.Op(", &" + e.room)
	}
	return c
}

// access is a field of the message: m.Lines, or *m if the message is its only field.
func (e *emitter) access(f *Field) string {
	if f.Name == "" {
		return "(*" + e.m + ")"
	}
	return e.m + "." + f.Name
}

// tag is the first number of an encoded field: the field number and the form of the value.
func tag(number, form int) uint64 { return uint64(number)<<3 | uint64(form) }

// Forms of values in the wire format.
const (
	varintForm  = 0
	fixed64Form = 1
	bytesForm   = 2
	fixed32Form = 5
)

// form is the wire form of an element.
func (el *Elem) form() int {
	switch el.Kind {
	case Bool, Int, Uint:
		return varintForm
	case Float:
		if el.Bits == 32 {
			return fixed32Form
		}
		return fixed64Form
	}
	return bytesForm
}

// bytesOf turns a tag into arguments of append.
func bytesOf(tag uint64) (text string, count int) {
	for ; tag >= 0x80; tag >>= 7 {
		text += fmt.Sprintf("%#02x, ", byte(tag)|0x80)
		count++
	}
	return text + fmt.Sprintf("%#02x", byte(tag)), count + 1
}

// helper is the name of the runtime's function for an element: Int, Float32s.
func (el *Elem) helper(list bool) string {
	name := map[Kind]string{Bool: "Bool", Int: "Int", Uint: "Uint", String: "String", Bytes: "Bytes", Complex: "Complex", Time: "Time", Duration: "Duration"}[el.Kind]
	if el.Kind == Float {
		name = fmt.Sprintf("Float%d", el.Bits)
	}
	if list {
		name += "s"
	}
	return name
}

// TypeCode turns a type into Go.
func TypeCode(t plan.TypeRef) *jen.Statement {
	switch t.Kind {
	case plan.Pointer:
		return jen.Op("*").Add(TypeCode(*t.Elem))
	case plan.Slice:
		return jen.Index().Add(TypeCode(*t.Elem))
	case plan.Array:
		return jen.Index(jen.Lit(int(t.Len))).Add(TypeCode(*t.Elem))
	case plan.Map:
		return jen.Map(TypeCode(*t.Key)).Add(TypeCode(*t.Elem))
	case plan.Empty:
		if len(t.Fields) == 0 {
			return jen.Struct()
		}
		s := code("struct {") // on one line
		for _, f := range t.Fields {
			if !f.Embedded {
				s.Id(f.Name)
			}
			s.Add(TypeCode(f.Type))
			if f.Tag != "" {
				s.Lit(f.Tag)
			}
			s.Op(";")
		}
		return s.Op("}")
	}
	c := jen.Id(t.Name)
	if t.Import != "" {
		c = jen.Qual(t.Import, t.Name)
	}
	if len(t.Args) > 0 {
		args := make([]jen.Code, len(t.Args))
		for i, a := range t.Args {
			args[i] = TypeCode(a)
		}
		c.Types(args...)
	}
	return c
}

// fieldNames lists the numbers and names of a message's fields, for errors.
func fieldNames(m *Message) string {
	var list []string
	for i := range m.Fields {
		list = append(list, fmt.Sprintf("%d %s", m.Fields[i].Number, m.Fields[i].name()))
	}
	return strings.Join(list, " ")
}
