package emit

import (
	"fmt"
	"strings"
	"time"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/wire"
)

// code is a piece of Go. Jennifer's statements are mutable; a piece that is used in
// several places has this type so that it is never changed.
type code = jen.Code

func id(name Ident) *jen.Statement { return jen.Id(string(name)) }

// sel is a selector expression: x.f.g. It is a single token, because the running
// time of jennifer depends on the number of tokens.
func sel(x Ident, fields ...Ident) *jen.Statement { return jen.Id(joined(x, fields)) }

// joined joins identifiers by dots.
func joined(x Ident, fields []Ident) string {
	s := string(x)
	for _, f := range fields {
		s += "." + string(f)
	}
	return s
}

// dot appends selectors to x itself and returns x.
func dot(x *jen.Statement, fields ...Ident) *jen.Statement {
	for _, f := range fields {
		x.Dot(string(f))
	}
	return x
}

func ref(x Ident, fields ...Ident) *jen.Statement { return jen.Op("&" + joined(x, fields)) }

// row joins pieces without a separator. It allocates once; a chain of Add would
// allocate for each piece.
func row(pieces ...code) *jen.Statement {
	s := jen.Statement(pieces)
	return &s
}

// joinedBy joins pieces with an operator.
func joinedBy(operator string, pieces []code) code {
	return jen.Custom(jen.Options{Separator: operator}, pieces...)
}

// Pieces that are used often. Nothing is ever appended to them.
var (
	star   = jen.Id("*")
	equals = jen.Id("=")
)

func define(x Ident, value code) code { return row(jen.Id(string(x)+" :="), value) }

func set(x, value code) code { return row(x, equals, value) }

// pool, piper, queue and topo are names from these packages of the runtime.
func pool(name Ident) *jen.Statement  { return jen.Qual(poolPath, string(name)) }
func piper(name Ident) *jen.Statement { return jen.Qual(piperPath, string(name)) }
func queue(name Ident) *jen.Statement { return jen.Qual(queuePath, string(name)) }
func topo(name Ident) *jen.Statement  { return jen.Qual(topoPath, string(name)) }

// pointer is the type *t.
func pointer(t code) *jen.Statement { return row(star, t) }

// ptr is the type *t for a type of the generated package.
func ptr(t Ident) *jen.Statement { return jen.Id("*" + string(t)) }

// index is EdgeIndex or ProcessorIndex as an int.
func index(constant Ident) *jen.Statement { return jen.Id("int(" + string(constant) + ")") }

// oneLine is a function body on the line of its signature.
func oneLine(body code) *jen.Statement { return jen.Op("{").Add(body).Op("}") }

// typeCode is the Go code of t.
func typeCode(t plan.TypeRef) *jen.Statement { return wire.TypeCode(t) }

// qualified is a name from a package that the scope has checked.
func qualified(path, name string) *jen.Statement {
	if path == "" {
		return jen.Id(name)
	}
	return jen.Qual(path, name)
}

// duration is d as a person would write it.
func duration(d time.Duration) code {
	units := []struct {
		unit time.Duration
		name Ident
	}{
		{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"},
		{time.Microsecond, "Microsecond"}, {time.Nanosecond, "Nanosecond"},
	}
	for _, u := range units {
		if d%u.unit == 0 && d != 0 {
			name := jen.Qual("time", string(u.name))
			if d == u.unit {
				return name
			}
			return jen.Lit(int(d / u.unit)).Op("*").Add(name)
		}
	}
	return jen.Lit(0)
}

// commentWidth is where a comment's line ends, in characters.
const commentWidth = 100

// comment turns text from any source into line comments.
func comment(format string, args ...any) []code {
	return wrapped("//", "//", fmt.Sprintf(format, args...))
}

// wrapped turns text into line comments. The first line begins with first, the others with next.
func wrapped(first, next, s string) []code {
	var lines []code
	line := append(make([]byte, 0, commentWidth), first...)
	for word := range strings.FieldsSeq(text(s)) {
		if len(line)+1+len(word) > commentWidth && len(line) > len(first) {
			lines = append(lines, jen.Comment(string(line)))
			line = append(line[:0], next...)
		}
		line = append(append(line, ' '), word...)
	}
	return append(lines, jen.Comment(string(line)))
}

// remark is a comment at the end of a line.
func remark(s *jen.Statement, format string, args ...any) *jen.Statement {
	return s.Comment("// " + text(fmt.Sprintf(format, args...)))
}

// part is a Go file that is being written.
type part struct {
	*model
	file *jen.File
}

// doc writes the comment of the declaration that follows.
func (p *part) doc(format string, args ...any) {
	for _, line := range comment(format, args...) {
		p.file.Add(line)
	}
}

// item writes an item of a list in a comment.
func (p *part) item(format string, args ...any) {
	for _, line := range wrapped("//   -", "//    ", fmt.Sprintf(format, args...)) {
		p.file.Add(line)
	}
}

// add writes a declaration.
func (p *part) add(declaration ...code) {
	p.file.Add(jen.Add(declaration...))
	p.file.Line()
}

// method writes a method of *typ, or a function if typ is "".
func (p *part) method(receiver, typ, name Ident, params, results []code, body ...code) {
	p.add(p.head(receiver, typ, name, params, results).Block(body...))
}

// short writes a method of one statement on one line. brief does the same without
// an empty line after it.
func (p *part) short(receiver, typ, name Ident, params, results []code, body code) {
	p.brief(receiver, typ, name, params, results, body)
	p.file.Line()
}

func (p *part) brief(receiver, typ, name Ident, params, results []code, body code) {
	p.file.Add(p.head(receiver, typ, name, params, results).Add(oneLine(body)))
}

// compact writes a method on one line if it has one statement.
func (p *part) compact(receiver, typ, name Ident, params, results, body []code) {
	if len(body) == 1 {
		p.short(receiver, typ, name, params, results, body[0])
	} else {
		p.method(receiver, typ, name, params, results, body...)
	}
}

func (p *part) head(receiver, typ, name Ident, params, results []code) *jen.Statement {
	f := jen.Func()
	if typ != "" {
		f.Params(param(receiver, ptr(typ)))
	}
	return f.Add(signature(name, params, results))
}

// signature is a function's name, parameters and results.
func signature(name Ident, params, results []code) *jen.Statement {
	f := id(name).Params(params...)
	switch len(results) {
	case 0:
	case 1:
		f.Add(results[0])
	default:
		f.Params(results...)
	}
	return f
}

// v returns the name of a variable, changed if it would shadow a name in use.
func (m *model) v(name Ident) Ident { return m.scope.local(name) }

// fields are the fields of a composite literal.
type fields []code

// when adds a field if on is true.
func (f *fields) when(on bool, name string, value code) {
	if on {
		*f = append(*f, key(name, value))
	}
}

func key(name string, value code) code { return row(jen.Id(name+":"), value) }

// into returns a function that assigns the result of a call to a new variable err.
func into(err Ident) func(*jen.Statement) code {
	return func(call *jen.Statement) code { return define(err, call) }
}

// param is a parameter or named result.
func param(name Ident, typ code) *jen.Statement { return row(id(name), typ) }
