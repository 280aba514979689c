package wire

import (
	"fmt"

	"github.com/dave/jennifer/jen"
)

// consumeMessage writes the function that reads a message.
func (e *emitter) consumeMessage(index int) {
	m := &e.schema.Messages[index]
	e.current = m
	var body []jen.Code
	if m.Recursive {
		body = append(body, code("if "+e.depth+" == 0 { return", rt("ErrDeep"), "}"))
	}
	switch m.Form {
	case Foreign:
		body = append(body, code("return", jen.Qual(protoPath, "UnmarshalOptions"), "{Merge: true}.Unmarshal("+e.b+", "+e.m+")"))
	case Pointer:
		body = append(body, code("if", rt("IsNil"), "("+e.b+") { return nil }"))
		if m.Large {
			body = append(body, code("if !", e.charge("Pointer", "*"+e.m), "{ return", rt("ErrSparse"), "}"))
		}
		body = append(body, code("return ", e.call(m.Of, e.of[m.Of].Consume, e.b, code(rt("New"), "("+e.m+")"))))
	default:
		body = append(body, e.consumeFields(m)...)
	}
	e.function("decodes the fields of a message from b into a zero value.", e.of[index].Consume, e.params(m, true), []jen.Code{jen.Error()}, body...)
}

func (e *emitter) consumeFields(m *Message) (body []jen.Code) {
	var cases []jen.Code
	for i := range m.Fields {
		f := &m.Fields[i]
		index := ""
		if f.Label == Array || f.Label == Repeated && f.Large && f.Elem.Kind == Nested {
			index = fmt.Sprintf("%s%d", e.i, f.Number)
			body = append(body, jen.Id("var "+index+" int"))
		}
		cases = append(cases, e.consumeField(f, index)...)
	}
	cases = append(cases, jen.Default().Block(jen.Id(e.r+".Skip()")))
	return append(body,
		code(e.r+" :=", rt("Read"), "("+e.b+")"),
		jen.For(jen.Id(e.r+".Next()")).Block(jen.Switch(jen.Id(e.r+".Tag")).Block(cases...)),
		jen.Return(jen.Id(fmt.Sprintf("%s.End(%q, %q)", e.r, m.Name, fieldNames(m)))))
}

// consumeField writes the cases of a field. index counts the elements of an array, or the
// elements of a list that are charged in advance.
func (e *emitter) consumeField(f *Field, index string) []jen.Code {
	x := e.access(f)
	single, list := tag(f.Number, f.Elem.form()), tag(f.Number, bytesForm)
	one := func(body ...jen.Code) jen.Code { return e.caseOf(single, body...) }
	switch f.Label {
	case Optional:
		return []jen.Code{one(e.consumeElem(e.r, &f.Elem, "", e.making("New", f, "", address(x))))}
	case Repeated:
		if f.Elem.Packed() {
			return []jen.Code{
				e.caseOf(list, code(rt(f.Elem.helper(true)), "(&"+e.r+", "+address(x)+")")),
				one(e.consumeElem(e.r, &f.Elem, "", code(rt("More"), "("+address(x)+")"))),
			}
		}
		return []jen.Code{one(e.consumeList(f, x, index))}
	case Array:
		at := func(r string) jen.Code { return code(rt("At"), "(&"+r+", "+x+"[:], &"+index+")") }
		next := e.consumeElem(e.r, &f.Elem, "", at(e.r))
		if !f.Elem.Packed() {
			return []jen.Code{one(next)}
		}
		return []jen.Code{
			e.caseOf(list,
				code(e.p+" :=", rt("Read"), "("+e.r+".Message())"),
				jen.For(jen.Id(e.p+".Left()")).Block(e.consumeElem(e.p, &f.Elem, "", at(e.p))),
				jen.Id(e.r+".Within("+e.p+`.End("", ""))`)),
			one(next),
		}
	case Map:
		return []jen.Code{e.caseOf(list, e.consumeEntry(f, x)...)}
	}
	return []jen.Code{one(e.consumeElem(e.r, &f.Elem, x, jen.Id(address(x))))}
}

// caseOf is a case for a tag. It has no comment, because its statements name the field.
func (e *emitter) caseOf(tag uint64, body ...jen.Code) jen.Code {
	return jen.Case(jen.Id(fmt.Sprintf("%#02x", tag))).Block(body...)
}

// consumeElem writes the code that reads an element with the reader r into the pointer to.
// x is the expression for the same element, or "" if there is none.
func (e *emitter) consumeElem(r string, el *Elem, x string, to jen.Code) jen.Code {
	switch el.Kind {
	case Time:
		if el.Convert {
			to = code("(*", jen.Qual("time", "Time"), ")(", to, ")")
		}
	case ByteArray:
		return code(rt("Array"), "(&"+r+",", operand(x, to), "[:])")
	case Binary:
		return code(r+".Within(", operand(x, to), ".UnmarshalBinary("+r+".Message()))")
	case Nested:
		return code(r+".Within(", e.call(el.Message, e.of[el.Message].Consume, r+".Message()", to), ")")
	}
	return code(rt(el.helper(false)), "(&"+r+",", to, ")")
}

// operand is an expression that a selector or [:] can follow.
func operand(x string, to jen.Code) jen.Code {
	if x != "" {
		return jen.Id(x)
	}
	return to
}

// consumeList writes the code that reads one element of a slice that is not packed.
func (e *emitter) consumeList(f *Field, x, index string) jen.Code {
	switch f.Elem.Kind {
	case Nested: // the bytes of the message are read before its memory is allocated
		args := address(x)
		if f.Large {
			args += ", &" + index
		}
		return e.consumeElem(e.r, &f.Elem, "", e.making("Grow", f, "&"+e.r+", ", args))
	case String:
		return code(rt("Strings"), "(&"+e.r+", "+address(x)+")")
	}
	return e.consumeElem(e.r, &f.Elem, "", e.making("More", f, "", address(x)))
}

// making is a call of a function that allocates an element. For a large element, the function
// takes the reader and charges the room. Otherwise its first argument is before.
func (e *emitter) making(function string, f *Field, before, args string) jen.Code {
	if f.Large {
		function, before = function+"Large", "&"+e.r+", "+e.room+", "
	}
	return code(rt(function), "("+before+args+")")
}

// consumeEntry writes the code that reads one pair of a map.
func (e *emitter) consumeEntry(f *Field, x string) []jen.Code {
	return []jen.Code{
		code(e.k+", "+e.v+" :=", rt("Pair"), "("+x+")"),
		code(e.p+" :=", rt("Read"), "("+e.r+".Message())"),
		jen.For(jen.Id(e.p + ".Next()")).Block(jen.Switch(jen.Id(e.p+".Tag")).Block(
			e.caseOf(tag(1, f.Key.form()), e.consumeElem(e.p, f.Key, e.k, jen.Id("&"+e.k))),
			e.caseOf(tag(2, f.Elem.form()), e.consumeElem(e.p, &f.Elem, e.v, jen.Id("&"+e.v))),
			jen.Default().Block(jen.Id(e.p+".Skip()")),
		)),
		jen.Id(e.r + ".Within(" + e.p + `.End("", "1 key 2 value"))`),
		e.making("Put", f, "&"+e.r+", ", address(x)+", "+e.k+", "+e.v),
	}
}
