package wire

import (
	"fmt"
	"strings"
)

// Part is a root and its role in a state machine.
type Part struct{ Kind, Root string }

// Describe describes the encoding of roots and of all messages in them: a line for each
// root, and then for each message a line with its name and a line for each field. Package
// fsm compares it with the description in a log.
//
//	state .Accounts
//	update .Transfer
//	message Accounts
//	1 Cents map string int64
//	2 Last optional .Transfer
//	message Transfer
//	1 To string
//
// Equal schemas give equal descriptions. A description depends only on the types and the
// field numbers.
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

// describer writes a description, with messages in the order in which they are found.
type describer struct {
	schema *Schema
	text   strings.Builder
	seen   map[int]bool
	next   []int
}

// message returns the name of a message. Its fields are written later.
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
	case Pointer: // encoded like the message that it points to
		fmt.Fprintf(&d.text, "1 value optional .%s\n", d.message(m.Of))
		return
	case Foreign: // described by its own .proto
		fmt.Fprintf(&d.text, "1 value proto:%s\n", m.Type)
		return
	}
	for j := range m.Fields {
		f := &m.Fields[j]
		fmt.Fprintf(&d.text, "%d %s %s\n", f.Number, f.name(), d.form(f))
	}
}

// form describes the encoding of a field.
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

// elem is the kind of an element, in one word. The name of a message begins with a dot.
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

// Types describes the encoding of roots, and of all messages in them, for the identity of a
// cluster: a line for each root, and then a line for each message with its fields. Names of
// roots that the schema does not have are ignored.
func (s *Schema) Types(roots []string) []string {
	parts := make([]Part, len(roots))
	for i, root := range roots {
		parts[i] = Part{"message " + root + " =", root}
	}
	var lines []string
	for line := range strings.Lines(s.Describe(parts...)) {
		line = strings.TrimSuffix(line, "\n")
		switch name, isType := strings.CutPrefix(line, "message "); {
		case isType && !strings.Contains(name, " = "):
			lines = append(lines, "type "+name+" =")
		case isType:
			lines = append(lines, line)
		case strings.HasSuffix(lines[len(lines)-1], "="):
			lines[len(lines)-1] += " field " + line
		default:
			lines[len(lines)-1] += ", field " + line
		}
	}
	return lines
}
