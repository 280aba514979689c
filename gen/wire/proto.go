package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
)

// ProtoOptions has contents of the .proto that are not in the schema.
type ProtoOptions struct {
	Topology string    // name of the topology, which gives the package name
	Refused  []Problem // problems of the messages that cannot be encoded
	Loose    string    // the file of field numbers, if it lacks some of them; else ""
}

// Proto is the .proto that describes the messages of a schema to other programs.
func Proto(s *Schema, o ProtoOptions) []byte {
	p := &protoFile{schema: s, pkg: strings.ToLower(ascii(spec.Exported(o.Topology))), names: make(names)}
	for i := range s.Messages {
		p.messages = append(p.messages, p.names.free(ascii(s.Messages[i].Name)))
	}
	for i := range s.Messages {
		p.message(i)
	}
	if p.complex != "" {
		fmt.Fprintf(&p.body, "\nmessage %s {\n  double real = 1;\n  double imag = 2;\n}\n", p.complex)
	}
	var b bytes.Buffer
	b.WriteString("// The messages of a topology, as topogen proto prints them.\n")
	if o.Loose != "" {
		fmt.Fprintf(&b, "// Field numbers that are not in %s may change: no process or log uses them.\n", line(o.Loose))
	}
	fmt.Fprintf(&b, "\nsyntax = \"proto3\";\n\npackage %s;\n", p.pkg)
	if p.duration || p.timestamp {
		b.WriteString("\n")
	}
	if p.duration {
		b.WriteString("import \"google/protobuf/duration.proto\";\n")
	}
	if p.timestamp {
		b.WriteString("import \"google/protobuf/timestamp.proto\";\n")
	}
	b.Write(p.body.Bytes())
	if len(o.Refused) > 0 {
		b.WriteString("\n// These messages cannot be encoded:\n")
	}
	for _, problem := range o.Refused {
		fmt.Fprintf(&b, "// %s\n", line(problem.String()))
	}
	return b.Bytes()
}

// protoFile is a .proto that is being written.
type protoFile struct {
	schema              *Schema
	pkg                 string
	body                bytes.Buffer
	messages            []string // names of the messages, by index
	names               names
	complex             string // name of the message for complex numbers; "" if not needed
	duration, timestamp bool
}

func (p *protoFile) message(index int) {
	m := &p.schema.Messages[index]
	var roots []string
	for _, r := range p.schema.Roots {
		if r.Message == index {
			roots = append(roots, r.Name)
		}
	}
	switch {
	case m.Form == Pointer && len(roots) > 0:
		fmt.Fprintf(&p.body, "\n// The topology's message %s has type %s. If it is nil, only field %d is present.\n", line(strings.Join(roots, ", ")), p.messages[m.Of], nilNumber)
		return
	case m.Form == Foreign && len(roots) > 0:
		fmt.Fprintf(&p.body, "\n// The topology's message %s is %s, which has a .proto of its own.\n", line(strings.Join(roots, ", ")), line(m.Type.String()))
		return
	case m.Form == Pointer || m.Form == Foreign:
		return
	}
	var more bytes.Buffer // messages for the pairs of maps
	p.body.WriteString("\n")
	if len(roots) > 0 {
		fmt.Fprintf(&p.body, "// The topology's message %s.\n", line(strings.Join(roots, ", ")))
	}
	if text := m.Type.String(); m.Form == Struct && m.Type.Kind == plan.Named && text != p.messages[index] {
		fmt.Fprintf(&p.body, "// Go type: %s.\n", line(text))
	}
	fmt.Fprintf(&p.body, "message %s {\n", p.messages[index])
	taken := make(map[string]bool)
	for i := range m.Fields {
		f := &m.Fields[i]
		kind, remark := p.field(p.messages[index], f, &more)
		fmt.Fprintf(&p.body, "  %s %s = %d;", kind, fieldOf(f.name(), taken), f.Number)
		if remark != "" {
			p.body.WriteString(" // " + line(remark))
		}
		p.body.WriteString("\n")
	}
	for _, gone := range m.Gone {
		fmt.Fprintf(&p.body, "  reserved %d; // %s\n", gone.Number, line(gone.Name))
	}
	p.body.WriteString("}\n")
	p.body.Write(more.Bytes())
}

// nilNumber is the field of wire.Nil.
const nilNumber = 1<<29 - 1

// field returns the type of a field and a remark about it.
func (p *protoFile) field(message string, f *Field, more *bytes.Buffer) (kind, remark string) {
	kind, remark = p.elem(&f.Elem)
	switch f.Label {
	case Optional:
		if f.Elem.Kind < Complex || f.Elem.Kind == Binary {
			kind = "optional " + kind
		}
	case Repeated, Array:
		kind = "repeated " + kind
		if f.Elem.Kind == Nested && p.schema.Messages[f.Elem.Message].Form == Pointer {
			remark = fmt.Sprintf("in a nil element only field %d is present", nilNumber)
		}
	case Map:
		key, about := p.elem(f.Key)
		if k := f.Key.Kind; k <= Uint || k == String {
			return "map<" + key + ", " + kind + ">", remark
		}
		name := p.names.free(message + ascii(spec.Exported(f.name())) + "Pair")
		if about != "" {
			about = " // " + line(about)
		}
		fmt.Fprintf(more, "\nmessage %s {\n  %s key = 1;%s\n  %s value = 2;\n}\n", name, key, about, kind)
		return "repeated " + name, remark
	}
	return kind, remark
}

func (p *protoFile) elem(e *Elem) (kind, remark string) {
	switch e.Kind {
	case Bool:
		return "bool", ""
	case Int:
		return fmt.Sprintf("sint%d", e.Bits), ""
	case Uint:
		return fmt.Sprintf("uint%d", e.Bits), ""
	case Float:
		if e.Bits == 32 {
			return "float", ""
		}
		return "double", ""
	case String:
		return "string", ""
	case Bytes, ByteArray:
		return "bytes", ""
	case Binary:
		return "bytes", "as encoded by " + e.Type
	case Complex:
		if p.complex == "" {
			p.complex = p.names.free("Complex")
		}
		return p.complex, ""
	case Time:
		p.timestamp = true
		return "google.protobuf.Timestamp", ""
	case Duration:
		p.duration = true
		return "google.protobuf.Duration", ""
	}
	m := &p.schema.Messages[e.Message]
	if m.Form == Pointer {
		return p.elem(&Elem{Kind: Nested, Message: m.Of})
	}
	if m.Form == Foreign {
		return "bytes", "a message " + m.Type.String() + ", which has a .proto of its own"
	}
	name := p.messages[e.Message]
	if strings.HasSuffix(name, "Entry") { // protoc generates such a name for each map
		name = "." + p.pkg + "." + name
	}
	return name, ""
}

// fieldOf is a field's name in protobuf. It keeps the JSON names of a message's fields
// distinct.
func fieldOf(name string, taken map[string]bool) string {
	field := snake(ascii(name))
	free := field
	for i := 2; taken[strings.ReplaceAll(free, "_", "")]; i++ {
		free = field + "_" + strconv.Itoa(i)
	}
	taken[strings.ReplaceAll(free, "_", "")] = true
	return free
}

// snake turns a name into lower case with underscores: HTTPServer is http_server.
func snake(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if upper(c) {
			if i > 0 && name[i-1] != '_' && (!upper(name[i-1]) || i+1 < len(name) && 'a' <= name[i+1] && name[i+1] <= 'z') {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

func upper(c byte) bool { return 'A' <= c && c <= 'Z' }

// ascii turns a Go name into a protobuf name, which may only have ASCII letters.
func ascii(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == '_' && i > 0, '0' <= r && r <= '9' && i > 0, 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "X%x", r)
		}
	}
	return b.String()
}

// line is text on one line, so that it stays within a comment.
func line(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
