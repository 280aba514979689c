package verify

import (
	"bytes"
	"encoding/binary"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"sync"

	"github.com/topogen/topogen/gen/plan"
)

// Most functions of a large topology are the same but for names, and of those
// that are alike one is type-checked, in each part. Everything else that is
// declared is checked always: types, variables, constants, assertions, and the
// heads of all functions that anything mentions.
//
// Two functions are alike where their text is the same but for names, one is made
// of the other by giving each name another one, and where these names are declared
// by lines that are the same but for names likewise. What is not a name from
// the topology has to be the same: names of the runtime, of packages, of what is
// predeclared, of variables, and numbers. So each expression in the one has the
// type that it has in the other, but for names. What names alone could make wrong
// is excluded: emit chooses free ones, and those of one processor, message or edge
// are made and passed on together.
//
// What does depend on the user's types are handlers and keys. That a type has the
// handlers is asserted by a variable, which is checked; a function that mentions
// a field or a method of a message, or the package that takes keys, is checked
// always.

// vocabulary has the names that mean the same in every function.
var vocabulary = sync.OnceValue(func() map[string]bool {
	words := make(map[string]bool)
	for _, name := range types.Universe.Names() {
		words[name] = true
	}
	names, err := fs.Glob(api, "api/*.txt")
	if err != nil {
		panic(err) // the pattern is right
	}
	for _, name := range names {
		source, err := api.ReadFile(name)
		if err != nil {
			panic(err) // it is embedded
		}
		file, _ := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				words[id.Name] = true
			}
			return true
		})
	}
	return words
})

// class says how a name is declared: two of the same are declared alike. A name
// that is declared by several lines has the classes of all.
type class uint64

// classes of the names that the topology gives.
type classes map[string]class

// declaration is one line that declares a name.
type declaration struct {
	name string
	line string // without the names of the topology
}

// typeName stands for the lines that declare the types that users write.
const typeName = "type"

// classesOf puts the declarations of all parts together with the names of types
// from the plan.
func classesOf(p *plan.Plan, parts []*part) classes {
	lines := make(map[string]uint64) // numbered
	seen := make(map[declaration]bool)
	c := make(classes)
	add := func(d declaration) {
		if seen[d] {
			return
		}
		seen[d] = true
		number, ok := lines[d.line]
		if !ok {
			number = uint64(len(lines) + 1)
			lines[d.line] = number
		}
		c[d.name] += class(mixed(number)) // whatever the order
	}
	for _, part := range parts {
		for _, d := range part.declared {
			add(d)
		}
	}
	for i := range p.Processors {
		addTypes(add, &p.Processors[i].Type)
	}
	for i := range p.Edges {
		addTypes(add, &p.Edges[i].Type)
		addTypes(add, &p.Edges[i].ReplyType)
	}
	return c
}

func addTypes(add func(declaration), t *plan.TypeRef) {
	if t == nil {
		return
	}
	if t.Name != "" {
		add(declaration{t.Name, typeName})
	}
	addTypes(add, t.Key)
	addTypes(add, t.Elem)
	for i := range t.Args {
		addTypes(add, &t.Args[i])
	}
}

// mixed spreads the bits of a number, so that sums of several tell these apart.
func mixed(n uint64) uint64 {
	n *= 0x9e3779b97f4a7c15
	n = (n ^ n>>32) * 0xd6e8feb86659fd93
	return n ^ n>>32
}

// declare lists what a piece declares, with the lines that do so.
func (p *part) declare(piece *piece) {
	if !bytes.HasPrefix(piece.source, []byte("func ")) {
		for line := range bytes.Lines(piece.source) {
			line, _, _ = bytes.Cut(line, []byte("//"))
			p.declareLine(line, 0)
		}
		return
	}
	line, skip := piece.source, 0
	if piece.body > 0 {
		line = line[:piece.body]
	}
	if bytes.HasPrefix(line, []byte("func (")) {
		skip = 2 // the receiver and its type
	}
	p.declareLine(line, skip)
}

// declareLine notes the name that a line of source declares: the first that it
// has, and of a method that behind the receiver.
func (p *part) declareLine(line []byte, skip int) {
	fixed := vocabulary()
	var name []byte
	p.scratch = p.scratch[:0]
	scan(line, func(between, word []byte) {
		p.scratch = append(append(p.scratch, between...), 0)
		if len(word) == 0 {
			return
		}
		if skip == 0 {
			name = word
		}
		skip--
		switch {
		case word[0] == '"':
			p.scratch = append(p.scratch, '"')
		case isDigit(word[0]) || fixed[string(word)]:
			p.scratch = append(p.scratch, word...)
		}
	})
	if name != nil && name[0] != '"' && !fixed[string(name)] {
		p.declared = append(p.declared, declaration{string(name), string(p.scratch)})
	}
}

// alike makes the key of a function's form: functions with the same key are
// alike. It is empty where the function has to be checked.
func (c classes) alike(key, function []byte, route string) []byte {
	fixed := vocabulary()
	first := make(map[string]int, 16)
	certain := true
	key = key[:0]
	plain := scan(function, func(between, word []byte) {
		key = append(key, between...)
		key = append(key, 0)
		switch {
		case len(word) == 0:
		case word[0] == '"':
			key = append(key, '"')
		case isDigit(word[0]) || fixed[string(word)]:
			key = append(key, word...)
			certain = certain && string(word) != route
		case c[string(word)] != 0:
			n, ok := first[string(word)]
			if !ok {
				n = len(first)
				first[string(word)] = n
			}
			key = binary.BigEndian.AppendUint64(append(key, 1, byte(n), byte(n>>8)), uint64(c[string(word)]))
		default:
			key = append(key, word...)
			before := bytes.TrimRight(between, " ")
			certain = certain && string(word) != route && !bytes.HasSuffix(before, []byte(".")) // of a type of the user's
		}
	})
	if !plain || !certain {
		return key[:0]
	}
	return key
}

// routePackage takes keys of messages.
const routePackage = "runtime/route\""

// routeName is how the part imports routePackage.
func (p *part) routeName() string {
	for line := range bytes.Lines(p.preamble) {
		if line = bytes.TrimSpace(line); bytes.HasSuffix(line, []byte(routePackage)) {
			line = bytes.TrimPrefix(line, []byte("import "))
			if name, _, ok := bytes.Cut(line, []byte(" ")); ok {
				return string(name)
			}
		}
	}
	return "route"
}

// choose decides which pieces of the part are checked as they are: of functions
// that are alike the first.
func (p *part) choose(c classes) {
	seen := make(map[string]bool)
	route := p.routeName()
	var key []byte
	for i := range p.pieces {
		piece := &p.pieces[i]
		if piece.body == 0 || !plainText(piece.doc) {
			continue
		}
		key = c.alike(key, piece.source, route)
		switch {
		case len(key) == 0:
		case seen[string(key)]:
			piece.use = head
		default:
			seen[string(key)] = true
		}
	}
}

// mentions are names by who mentions them, which decides what heads of functions
// are needed. One that is left out by mistake is an error that the whole has not.
type mentions struct {
	users  map[string]bool // in the user's files
	ours   map[string]bool // in pieces that are checked as they are, types aside: these call nothing
	listed map[string]bool // as methods of interfaces
}

func newMentions(users map[string]bool) *mentions {
	return &mentions{users: users, ours: make(map[string]bool), listed: make(map[string]bool)}
}

func (m *mentions) add(p *part) {
	for i := range p.pieces {
		piece := &p.pieces[i]
		names := m.ours
		if line, _, _ := bytes.Cut(piece.source, []byte("\n")); bytes.HasPrefix(line, []byte("type ")) {
			names = m.listed
			if !bytes.Contains(line, []byte("interface")) {
				continue
			}
		}
		if piece.use == whole {
			words(piece.source, func(word []byte) {
				if !names[string(word)] { // of most no string is made
					names[string(word)] = true
				}
			})
		}
	}
}

// need reports whether the head of a function is needed: of a method, where
// somebody may have a value of its type and call it.
func (m *mentions) need(function []byte) bool {
	typ, name := nameOf(function)
	if len(typ) == 0 {
		return m.users[string(name)] || m.ours[string(name)]
	}
	switch users, ours := m.users[string(name)], m.ours[string(name)]; {
	case m.ours[string(typ)]:
		return users || ours || m.listed[string(name)] || vocabulary()[string(name)]
	case !token.IsExported(string(typ)): // a field may hold it
		return users || ours
	default:
		return users && m.users[string(typ)]
	}
}

// words calls found for everything in source that may be a name.
func words(source []byte, found func(word []byte)) {
	for at := 0; at < len(source); {
		length := wordLength(source[at:])
		if length > 0 {
			found(source[at : at+length])
		}
		at += length + 1
	}
}

// reduce makes the source that is type-checked: functions whose bodies are like
// others without these, and those of them that nobody mentions not at all.
func (p *part) reduce(m *mentions) {
	if p.pieces == nil {
		return
	}
	var b bytes.Buffer
	b.Grow(len(p.source) / 2)
	b.Write(p.preamble)
	for i := range p.pieces {
		piece := &p.pieces[i]
		if piece.use == head && !m.need(piece.source) {
			piece.use = dropped
		}
		switch piece.use {
		case whole:
			b.WriteByte('\n')
			b.WriteByte('\n')
			b.Write(piece.doc)
			b.Write(piece.source)
		case head:
			b.WriteByte('\n')
			b.Write(piece.source[:piece.body])
		}
	}
	b.WriteByte('\n')
	p.reduced = b.Bytes()
}

// nameOf is the name of a function, and of its receiver's type.
func nameOf(function []byte) (typ, name []byte) {
	rest := bytes.TrimPrefix(function, []byte("func "))
	if receiver, behind, ok := bytes.Cut(rest, []byte(")")); ok && receiver[0] == '(' {
		typ = receiver[bytes.LastIndexAny(receiver, " *(")+1:]
		rest = bytes.TrimLeft(behind, " ")
	}
	return typ, rest[:wordLength(rest)]
}
