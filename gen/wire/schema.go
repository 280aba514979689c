package wire

import (
	"slices"

	"github.com/topogen/topogen/gen/plan"
)

// Schema is the encoding of messages. It consists only of strings, numbers and slices, so
// that the hash of a plan can include it.
type Schema struct {
	Package  string // import path of the package of the codecs
	Roots    []Root
	Messages []Message
}

// Root is a message of the topology.
type Root struct {
	Name    string // its name in the topology
	Message int    // index into Messages; -1: it cannot be encoded
}

// Message is a type with its own codec functions.
type Message struct {
	Name      string // unique: Order, PageString
	Key       string // key in the file of numbers: Order, example.com/model.Order; "": its numbers are fixed
	Form      Form
	Type      plan.TypeRef
	Fields    []Field // for Struct and Value
	Of        int     // for Pointer: the message that it points to
	Recursive bool    // it can contain itself
	Large     bool    // for Pointer: the value that it points to is large
	Charged   bool    // it can contain large values
	Sorted    bool    // its maps are written in the byte order of their entries
	Gone      []Gone  // numbers that must not be used again
}

// Gone is a removed field.
type Gone struct {
	Name   string
	Number int
}

// Form is the form of a message in Go.
type Form int

const (
	Struct  Form = iota
	Value        // any other type: field 1 of a wrapper message
	Pointer      // pointer to another message; nil is wire.Nil
	Foreign      // a proto.Message
)

// Field is a field of a message.
type Field struct {
	Name   string // name of the struct's field; "" for the field of a Value
	Number int
	Tagged bool // the number comes from a struct tag
	Label  Label
	Elem   Elem
	Key    *Elem // for maps
	Large  bool  // an element, a pair or the value behind the pointer is large
}

// Label says how often an element occurs.
type Label int

const (
	Plain    Label = iota // once; a zero is omitted
	Optional              // behind a pointer; nil is omitted
	Repeated              // in a slice
	Array                 // in an array
	Map                   // in a map, as messages of key, 1, and value, 2
)

// Elem is a scalar or a message.
type Elem struct {
	Kind    Kind
	Bits    int    // for numbers
	Message int    // for Nested: index into Schema.Messages
	Appends bool   // for Binary: it has AppendBinary, which saves a copy
	Type    string // for Binary: the type's name for comments
	Convert bool   // for Time and Duration: it is a named type with that underlying type
}

// Kind is the kind of an element.
type Kind int

const (
	Bool Kind = iota
	Int
	Uint
	Float
	String
	Bytes
	ByteArray
	Complex
	Time
	Duration
	Binary // by its own MarshalBinary and UnmarshalBinary
	Nested // a message
)

// Packed reports whether a list of el has one tag for all elements.
func (el *Elem) Packed() bool { return el.Kind <= Float }

// holds lists the messages that m contains directly.
func (m *Message) holds() (list []int) {
	if m.Form == Pointer {
		list = append(list, m.Of)
	}
	for i := range m.Fields {
		for _, e := range []*Elem{m.Fields[i].Key, &m.Fields[i].Elem} {
			if e != nil && e.Kind == Nested {
				list = append(list, e.Message)
			}
		}
	}
	return list
}

// sorted sets Sorted for a message and for all messages in it.
func (s *Schema) sorted(message int) {
	if m := &s.Messages[message]; !m.Sorted {
		m.Sorted = true
		for _, inner := range m.holds() {
			s.sorted(inner)
		}
	}
}

// growing reports the messages whose encoding can be far larger than their size in memory,
// because a message contains itself or has elements that may share memory.
func (s *Schema) growing() []bool {
	grows := make([]bool, len(s.Messages))
	for changed := true; changed; {
		changed = false
		for i := range s.Messages {
			m := &s.Messages[i]
			now := m.Recursive || slices.ContainsFunc(m.holds(), func(inner int) bool { return grows[inner] }) ||
				slices.ContainsFunc(m.Fields, func(f Field) bool { return f.Label == Map || f.Label >= Repeated && !f.Elem.Packed() })
			if now && !grows[i] {
				grows[i], changed = true, true
			}
		}
	}
	return grows
}

// Imports lists the import paths that the codecs use.
func (s *Schema) Imports() []string {
	list := []string{runtimePath}
	for i := range s.Messages {
		m := &s.Messages[i]
		list = m.Type.Imports(list)
		if m.Form == Foreign {
			list = append(list, protoPath)
		}
		if slices.ContainsFunc(m.Fields, func(f Field) bool { return f.Elem.Convert }) {
			list = append(list, "time")
		}
	}
	return list
}

// Mentions lists the names of the package that the codecs use.
func (s *Schema) Mentions() (list []string) {
	for i := range s.Messages {
		s.Messages[i].Type.Walk(func(t *plan.TypeRef) {
			if t.Kind == plan.Named && t.Import == "" {
				list = append(list, t.Name)
			}
		})
	}
	return list
}
