package wire

import (
	"fmt"
	"strings"
)

// Part is a root, and what it is of a state machine.
type Part struct{ Kind, Root string }

// Describe says how roots and all that they hold are written: a line for each root, and
// then for each message a line with its name and one for each field. It is what package
// fsm compares with the description in a log.
//
//	state .Accounts
//	update .Transfer
//	message Accounts
//	1 Cents map string int64
//	2 Last optional .Transfer
//	message Transfer
//	1 To string
//
// Equal schemas give equal descriptions, and what they say depends on nothing but the
// types and the field numbers.
func (s *Schema) Describe(parts ...Part) string {
	d := &describer{schema: s, seen: make(map[int]bool)}
	for _, p := range parts {
		for _, root := range s.Roots {
			if root.Name == p.Root && root.Message >= 0 {
				fmt.Fprintf(&d.text, "%s .%s\n", p.Kind, d.message(root.Message))
			}
		}
	}
	for len(d.next) > 0 {
		i := d.next[0]
		d.next = d.next[1:]
		d.fields(i)
	}
	return d.text.String()
}

// describer writes a description, message by message as they are found.
type describer struct {
	schema *Schema
	text   strings.Builder
	seen   map[int]bool
	next   []int
}

// message is what a message is called; its fields are written later.
func (d *describer) message(i int) string {
	if !d.seen[i] {
		d.seen[i] = true
		d.next = append(d.next, i)
	}
	return d.schema.Messages[i].Name
}

func (d *describer) fields(i int) {
	m := &d.schema.Messages[i]
	fmt.Fprintf(&d.text, "message %s\n", m.Name)
	switch m.Form {
	case Pointer: // which is written as what it leads to
		fmt.Fprintf(&d.text, "1 value optional .%s\n", d.message(m.Of))
		return
	case Foreign: // it has rules of its own
		fmt.Fprintf(&d.text, "1 value proto:%s\n", m.Type)
		return
	}
	for j := range m.Fields {
		f := &m.Fields[j]
		fmt.Fprintf(&d.text, "%d %s %s\n", f.Number, f.name(), d.form(f))
	}
}

// form is how a field is written.
func (d *describer) form(f *Field) string {
	elem := d.elem(&f.Elem)
	switch f.Label {
	case Optional:
		return "optional " + elem
	case Repeated:
		return "list " + elem
	case Array:
		return "array " + elem
	case Map:
		return "map " + d.elem(f.Key) + " " + elem
	}
	return elem
}

// elem is the kind of an element, in one word; that of a message begins with a dot.
func (d *describer) elem(e *Elem) string {
	switch e.Kind {
	case Bool:
		return "bool"
	case Int:
		return fmt.Sprintf("int%d", e.Bits)
	case Uint:
		return fmt.Sprintf("uint%d", e.Bits)
	case Float:
		return fmt.Sprintf("float%d", e.Bits)
	case String:
		return "string"
	case Bytes, ByteArray:
		return "bytes"
	case Complex:
		return "complex"
	case Time:
		return "time"
	case Duration:
		return "duration"
	case Binary:
		return "binary:" + e.Type
	}
	return "." + d.message(e.Message)
}
