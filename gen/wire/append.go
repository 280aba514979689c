package wire

import (
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"
)

// appendMessage writes the function that appends a message.
func (e *emitter) appendMessage(index int) {
	m := &e.schema.Messages[index]
	e.current = m
	var body []jen.Code
	if m.Recursive {
		body = append(body, code("if "+e.depth+" == 0 { return "+e.b+",", rt("ErrDeep"), "}"))
		if e.grows[index] {
			body = append(body, e.tooLarge(rt("ErrLarge")))
		}
	}
	switch m.Form {
	case Foreign:
		options := "{}"
		if m.Sorted {
			options = "{Deterministic: true}"
		}
		body = append(body, code("return", jen.Qual(protoPath, "MarshalOptions"), options+".MarshalAppend("+e.b+", "+e.m+")"))
	case Pointer:
		body = append(body, code("if *"+e.m+" == nil { return append("+e.b+",", rt("Nil"), "...), nil }"))
		if m.Large {
			body = append(body, e.charge("Pointer", "*"+e.m))
		}
		body = append(body, code("return ", e.callAppend(m.Of, e.b, "*"+e.m)))
	default:
		for i := range m.Fields {
			body = append(body, e.appendField(&m.Fields[i])...)
		}
		body = append(body, jen.Id("return "+e.b+", nil"))
	}
	e.function("appends the fields of a message to b.", e.of[index].Append, e.appendParams(index, true), e.results(), body...)
}

// appendField appends a field, unless it is zero.
func (e *emitter) appendField(f *Field) []jen.Code {
	x, name := e.access(f), f.name()
	var charged []jen.Code
	if f.Large {
		label := map[Label]string{Optional: "Pointer", Repeated: "List", Map: "Map"}[f.Label]
		charged = append(charged, e.charge(label, bare(x)))
	}
	switch f.Label {
	case Optional:
		return []jen.Code{jen.If(jen.Id(bare(x) + " != nil")).Block(append(charged, e.appendElem(f.Number, name, &f.Elem, "(*"+x+")")...)...)}
	case Repeated, Array:
		if f.Elem.Packed() {
			return []jen.Code{jen.If(jen.Id("len(" + x + ") != 0")).Block(e.appendPacked(f, x)...)}
		}
		return append(charged, jen.For(jen.Id(e.i+" := range "+x)).Block(e.bounded(name, e.appendElem(f.Number, name, &f.Elem, x+"["+e.i+"]"))...))
	case Map:
		body := []jen.Code{e.begin(f.Number, name), jen.Id(e.entry + " := len(" + e.b + ")")}
		body = append(body, inBlock(f.Key, e.appendElem(1, name+".key", f.Key, e.k))...)
		body = append(body, inBlock(&f.Elem, e.appendElem(2, name+".value", &f.Elem, e.v))...)
		body = append(body, code(e.b+" =", rt("End"), "("+e.b+", "+e.entry+")"))
		if e.current.Sorted {
			body = append(body, jen.Id(e.order+".Add("+e.b+")"))
		}
		loop := jen.For(jen.Id(e.k + ", " + e.v + " := range " + x)).Block(e.bounded(name, body)...)
		if !e.current.Sorted {
			return append(charged, loop)
		}
		return append(charged, jen.Block(code(e.order+" :=", rt("Ordered"), "("+e.b+", len("+x+"))"), loop, jen.Id(e.order+".Sort("+e.b+")")))
	}
	body := e.appendElem(f.Number, name, &f.Elem, x)
	switch f.Elem.Kind {
	case Bool:
		return []jen.Code{jen.If(jen.Id(x)).Block(body...)}
	case Int, Uint, Duration:
		return []jen.Code{jen.If(jen.Id(bare(x) + " != 0")).Block(body...)}
	case Float:
		return []jen.Code{jen.If(code("!", rt("Zero"), "("+x+")")).Block(body...)}
	case String:
		return []jen.Code{jen.If(jen.Id(bare(x) + ` != ""`)).Block(body...)}
	case Bytes:
		return []jen.Code{jen.If(jen.Id("len(" + x + ") != 0")).Block(body...)}
	case Time:
		return []jen.Code{jen.If(code("!", timeOf(&f.Elem, x), ".IsZero()")).Block(body...)}
	case Nested, Complex: // a zero value is encoded as empty and omitted
		_, n := bytesOf(tag(f.Number, bytesForm))
		body[len(body)-1] = code(e.b+" =", rt("EndOrDrop"), fmt.Sprintf("(%s, %s, %d)", e.b, e.at, n+1))
	}
	return inBlock(&f.Elem, body)
}

// bounded adds a check of the limit before the code that appends an element of a list or
// a map. Elements may share memory, so a small value may have a huge encoding.
func (e *emitter) bounded(name string, body []jen.Code) []jen.Code {
	if !e.names.Bounded {
		return body
	}
	failure := code(rt("Failed"), fmt.Sprintf("(%q, %q,", e.current.Name, name), rt("ErrLarge"), ")")
	return append([]jen.Code{e.tooLarge(failure)}, body...)
}

// charge writes the code that charges the room for a large element.
func (e *emitter) charge(label, x string) jen.Code {
	return code(rt("Charge"+label), "("+e.room+", "+x+")")
}

// inBlock puts the code that appends an element into a block if it declares variables.
func inBlock(el *Elem, body []jen.Code) []jen.Code {
	if el.Kind < Complex {
		return body
	}
	return []jen.Code{jen.Block(body...)}
}

// begin appends the tag of an element whose length is not known yet.
func (e *emitter) begin(number int, name string) jen.Code {
	text, _ := bytesOf(tag(number, bytesForm))
	return remark(number, name, code(e.b+" = append("+e.b+", "+text+",", rt("Begin"), ")"))
}

func (e *emitter) appendPacked(f *Field, x string) []jen.Code {
	if f.Label == Array {
		x += "[:]"
	}
	text, _ := bytesOf(tag(f.Number, bytesForm))
	return []jen.Code{
		remark(f.Number, f.name(), jen.Id(e.b+" = append("+e.b+", "+text+")")),
		code(e.b+" =", rt("Append"+f.Elem.helper(true)), "("+e.b+", "+x+")"),
	}
}

// appendElem appends an addressable element x with its tag.
func (e *emitter) appendElem(number int, name string, el *Elem, x string) []jen.Code {
	if el.Kind < Complex {
		helper := el.helper(false)
		if el.Kind == ByteArray {
			helper, x = "Bytes", x+"[:]"
		}
		text, _ := bytesOf(tag(number, el.form()))
		return []jen.Code{
			remark(number, name, jen.Id(e.b+" = append("+e.b+", "+text+")")),
			code(e.b+" =", rt("Append"+helper), "("+e.b+", "+bare(x)+")"),
		}
	}
	failed := code("; "+e.err+" != nil { return "+e.b+",", rt("Failed"), fmt.Sprintf("(%q, %q, %s)", e.current.Name, name, e.err), "}")
	if el.Kind == Binary && !el.Appends {
		text, _ := bytesOf(tag(number, bytesForm))
		return []jen.Code{
			jen.Id(e.p + ", " + e.err + " := " + x + ".MarshalBinary()"),
			code("if "+e.err+" != nil { return "+e.b+",", rt("Failed"), fmt.Sprintf("(%q, %q, %s)", e.current.Name, name, e.err), "}"),
			remark(number, name, jen.Id(e.b+" = append("+e.b+", "+text+")")),
			code(e.b+" =", rt("AppendBytes"), "("+e.b+", "+e.p+")"),
		}
	}
	body := []jen.Code{e.begin(number, name), jen.Id(e.at + " := len(" + e.b + ")")}
	switch el.Kind {
	case Complex:
		body = append(body, code(e.b+" =", rt("AppendComplex"), "("+e.b+", "+bare(x)+")"))
	case Time:
		body = append(body, code(e.b+" =", rt("AppendTime"), "("+e.b+",", timeOf(el, x), ")"))
	case Duration:
		body = append(body, code(e.b+" =", rt("AppendDuration"), "("+e.b+", "+bare(x)+")"))
	case Binary:
		body = append(body, code("if "+e.b+", "+e.err+" = "+x+".AppendBinary("+e.b+")", failed))
	case Nested:
		body = append(body, code("if "+e.b+", "+e.err+" =", e.callAppend(el.Message, e.b, address(x)), failed))
	}
	return append(body, code(e.b+" =", rt("End"), "("+e.b+", "+e.at+")"))
}

// name is the name of a field in errors.
func (f *Field) name() string {
	if f.Name == "" {
		return "value"
	}
	return f.Name
}

// remark adds a comment with the field's name and number to the end of a line.
func remark(number int, name string, c jen.Code) jen.Code {
	return code(c).Comment(fmt.Sprintf("// %s = %d", name, number))
}

// timeOf is a time.Time with the value of x.
func timeOf(el *Elem, x string) *jen.Statement {
	if el.Convert {
		return code(jen.Qual("time", "Time"), "("+x+")")
	}
	return jen.Id(x)
}

// address is a pointer to x.
func address(x string) string {
	if pointer, ok := pointed(x); ok {
		return pointer
	}
	return "&" + x
}

// bare is x without parentheses, for use as an argument.
func bare(x string) string {
	if pointer, ok := pointed(x); ok {
		return "*" + pointer
	}
	return x
}

// pointed is the pointer in (*pointer).
func pointed(x string) (pointer string, ok bool) {
	inner, ok := strings.CutPrefix(x, "(*")
	return strings.TrimSuffix(inner, ")"), ok && strings.HasSuffix(inner, ")")
}
