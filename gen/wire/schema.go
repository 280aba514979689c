package wire

import (
	"slices"

	"github.com/topogen/topogen/gen/plan"
)

// Schema says how messages are written. It holds strings, numbers and slices
// alone, so that the hash of a plan can take it in.
type Schema struct {
	Package  string // import path of the package that the codecs are for
	Roots    []Root
	Messages []Message
}

// Root is a message of the topology.
type Root struct {
	Name    string // as the topology calls it
	Message int    // index into Messages; -1: it cannot be encoded
}

// Message is a type with functions of its own.
type Message struct {
	Name      string // unique: Order, PageString
	Key       string // of the file of numbers: Order, example.com/model.Order; "": its numbers are fixed
	Form      Form
	Type      plan.TypeRef
	Fields    []Field // of Struct and Value
	Of        int     // of Pointer: the message that it leads to
	Recursive bool    // it can hold itself
	Large     bool    // of Pointer: what it leads to is large
	Charged   bool    // it can hold what is large
	Sorted    bool    // its maps are written in the order of their bytes
	Gone      []Gone  // numbers that nothing may use again
}

// Gone is a field that the message had.
type Gone struct {
	Name   string
	Number int
}

// Form is what a message is in Go.
type Form int

const (
	Struct  Form = iota
	Value        // anything else: a made-up message whose field 1 it is
	Pointer      // to another message; nil is wire.Nil
	Foreign      // a proto.Message
)

// Field is a field of a message.
type Field struct {
	Name   string // of the struct's field; "" for the field of a Value
	Number int
	Tagged bool // the number comes from a struct tag
	Label  Label
	Elem   Elem
	Key    *Elem // of maps
	Large  bool  // an element, a pair, or what the pointer leads to is large
}

// Label is how often an element occurs.
type Label int

const (
	Plain    Label = iota // once; a zero is left out
	Optional              // behind a pointer; nil is left out
	Repeated              // in a slice
	Array                 // in an array
	Map                   // in a map, as messages of key, 1, and value, 2
)

// Elem is a scalar or a message.
type Elem struct {
	Kind    Kind
	Bits    int    // of numbers
	Message int    // of Nested: index into Schema.Messages
	Appends bool   // of Binary: it has AppendBinary, which copies once less
	Type    string // of Binary: for people
	Convert bool   // of Time and Duration: it is a named type of that underlying type
}

// Kind is what an element is.
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

// Packed reports whether a list of e has one tag for all.
func (e *Elem) Packed() bool { return e.Kind <= Float }

// holds lists the messages that m holds itself.
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

// sorted has a message sort its maps, and all that it holds.
func (s *Schema) sorted(message int) {
	if m := &s.Messages[message]; !m.Sorted {
		m.Sorted = true
		for _, inner := range m.holds() {
			s.sorted(inner)
		}
	}
}

// growing tells the messages that can be written in far more bytes than they take
// in memory: a message can hold itself, or it has elements that may share their
// memory.
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

// Imports lists the import paths that the codecs mention.
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

// Mentions lists the names of the package that the codecs mention.
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
