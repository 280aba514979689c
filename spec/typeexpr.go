package spec

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// TypeKind is the form of a Go type expression.
type TypeKind int

const (
	NamedType TypeKind = iota // Name, with ImportPath and Args
	PointerType
	SliceType
	ArrayType  // Len elements
	MapType    // from Key to Elem
	StructType // with Fields; a file cannot contain it
)

// TypeExpr is a Go type with complete import paths, such as
// *example.com/shop/model.Page[string] or map[string][]byte. In a result of ParseType every
// name is an identifier and every path is an import path, so it is safe to generate code from
// it.
type TypeExpr struct {
	Kind   TypeKind
	Import string     // of a NamedType; "" for this package and predeclared types
	Name   string     // of a NamedType
	Args   []TypeExpr // type arguments of a NamedType
	Elem   *TypeExpr  // of pointers, slices, arrays and maps
	Key    *TypeExpr  // of a MapType
	Len    int64      // of an ArrayType
	Fields []TypeField
}

// TypeField is a field of a StructType.
type TypeField struct {
	Name     string
	Type     TypeExpr
	Tag      string
	Embedded bool
}

// TypeError is a mistake in a type expression, with its position.
type TypeError struct {
	Start, End int // bytes of the expression
	Message    string
}

func (e *TypeError) Error() string { return e.Message }

// isType reports whether a predeclared name is a type. comparable is only a constraint.
func isType(name string) bool {
	_, ok := types.Universe.Lookup(name).(*types.TypeName)
	return ok && name != "comparable"
}

// isPredeclared reports whether Go predeclares a name.
func isPredeclared(name string) bool { return types.Universe.Lookup(name) != nil }

// Predeclared reports whether the type is predeclared in Go, such as string.
func (t TypeExpr) Predeclared() bool {
	return t.Kind == NamedType && t.Import == "" && isType(t.Name)
}

// String returns the expression in the form of the topology file.
func (t TypeExpr) String() string { return t.Format(func(path string) string { return path }) }

// Format returns t as Go source. name returns the qualifier of an import path.
func (t TypeExpr) Format(name func(path string) string) string {
	switch t.Kind {
	case PointerType:
		return "*" + t.Elem.Format(name)
	case SliceType:
		return "[]" + t.Elem.Format(name)
	case ArrayType:
		return "[" + strconv.FormatInt(t.Len, 10) + "]" + t.Elem.Format(name)
	case MapType:
		return "map[" + t.Key.Format(name) + "]" + t.Elem.Format(name)
	case StructType:
		fields := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = f.Name + " " + f.Type.Format(name)
		}
		return "struct{" + strings.Join(fields, "; ") + "}"
	}
	s := t.Name
	if t.Import != "" {
		s = name(t.Import) + "." + s
	}
	if len(t.Args) > 0 {
		args := make([]string, len(t.Args))
		for i, a := range t.Args {
			args[i] = a.Format(name)
		}
		s += "[" + strings.Join(args, ", ") + "]"
	}
	return s
}

// Walk calls visit for t and for every type in it.
func (t *TypeExpr) Walk(visit func(*TypeExpr)) {
	visit(t)
	for i := range t.Args {
		t.Args[i].Walk(visit)
	}
	for i := range t.Fields {
		t.Fields[i].Type.Walk(visit)
	}
	if t.Key != nil {
		t.Key.Walk(visit)
	}
	if t.Elem != nil {
		t.Elem.Walk(visit)
	}
}

// Imports appends the import paths of t to paths.
func (t TypeExpr) Imports(paths []string) []string {
	t.Walk(func(t *TypeExpr) {
		if t.Import != "" {
			paths = append(paths, t.Import)
		}
	})
	return paths
}

// In returns t as the package at an import path writes it, without an import of the package
// itself.
func (t TypeExpr) In(path string) TypeExpr {
	if t.Import == path {
		t.Import = ""
	}
	t.Args = slices.Clone(t.Args)
	for i := range t.Args {
		t.Args[i] = t.Args[i].In(path)
	}
	for _, part := range []**TypeExpr{&t.Key, &t.Elem} {
		if *part != nil {
			inner := (*part).In(path)
			*part = &inner
		}
	}
	return t
}

// ParseType reads a Go type expression with complete import paths: names with type arguments, and
// pointers, slices, arrays and maps of them. It rejects literals of function, channel,
// interface and struct types, which need a name. The error is a *TypeError.
func ParseType(expr string) (*TypeExpr, error) {
	p := &typeParser{text: expr}
	if utf8.RuneCountInString(expr) > typeMax {
		return nil, p.fail(0, len(expr), fmt.Sprintf("a type must have at most %d characters, got more", typeMax))
	}
	t, err := p.parse(0)
	if err != nil {
		return nil, err
	}
	if p.at < len(expr) {
		return nil, p.fail(p.at, len(expr), fmt.Sprintf("a type must end here, got %q after it", clip(expr[p.at:])))
	}
	return t, nil
}

type typeParser struct {
	text string
	at   int
}

func (p *typeParser) fail(start, end int, message string) error {
	return &TypeError{Start: start, End: max(start, end), Message: message}
}

func (p *typeParser) accept(prefix string) bool {
	if strings.HasPrefix(p.text[p.at:], prefix) {
		p.at += len(prefix)
		return true
	}
	return false
}

func (p *typeParser) parse(depth int) (*TypeExpr, error) {
	if depth > typeDepthMax {
		return nil, p.fail(p.at, len(p.text), fmt.Sprintf("a type must be nested at most %d deep, got more", typeDepthMax))
	}
	switch {
	case p.accept("*"):
		return p.of(&TypeExpr{Kind: PointerType}, depth)
	case p.accept("[]"):
		return p.of(&TypeExpr{Kind: SliceType}, depth)
	case p.accept("["):
		return p.array(depth)
	case p.accept("map["):
		key, err := p.parse(depth + 1)
		if err != nil {
			return nil, err
		}
		if !p.accept("]") {
			return nil, p.fail(p.at, p.at+1, `the key of a map must end with "]"`)
		}
		return p.of(&TypeExpr{Kind: MapType, Key: key}, depth)
	}
	return p.named(depth)
}

func (p *typeParser) of(t *TypeExpr, depth int) (*TypeExpr, error) {
	var err error
	t.Elem, err = p.parse(depth + 1)
	return t, err
}

func (p *typeParser) array(depth int) (*TypeExpr, error) {
	start := p.at
	for p.at < len(p.text) && isDigit(p.text[p.at]) {
		p.at++
	}
	n, err := strconv.Atoi(p.text[start:p.at])
	if err != nil || n > arrayMax || strconv.Itoa(n) != p.text[start:p.at] || !p.accept("]") {
		return nil, p.fail(start-1, p.at, fmt.Sprintf("an array must have the form [N]T, where N is a number of at most %d", arrayMax))
	}
	return p.of(&TypeExpr{Kind: ArrayType, Len: int64(n)}, depth)
}

// named reads a name, with an optional import path before it and optional type arguments after
// it. The path ends at the last dot: "gopkg.in/yaml.v3.Node".
func (p *typeParser) named(depth int) (*TypeExpr, error) {
	start := p.at
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		if !isPathByte(p.text[p.at]) && (r < utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r)) {
			break
		}
		p.at += size
	}
	word := p.text[start:p.at]
	if word == "" {
		return nil, p.fail(start, start+1, p.missing())
	}
	t := &TypeExpr{Name: word}
	if slash := strings.LastIndexByte(word, '/'); slash >= 0 || strings.Contains(word, ".") {
		dot := strings.LastIndexByte(word, '.')
		if dot < slash {
			return nil, p.fail(start, p.at, fmt.Sprintf("a type must follow the import path, got only %q", clip(word)))
		}
		t.Import, t.Name = word[:dot], word[dot+1:]
		if problem := importPathProblem(t.Import); problem != "" {
			return nil, p.fail(start, start+dot, problem)
		}
		if !isIdentifier(t.Name) {
			return nil, p.fail(start+dot+1, p.at, fmt.Sprintf("a type name must be a Go identifier, got %q", t.Name))
		}
		if !token.IsExported(t.Name) {
			return nil, p.fail(start+dot+1, p.at, fmt.Sprintf("a type of another package must be exported, got %s", t.Name))
		}
	}
	if problem := typeNameProblem(t.Name); problem != "" {
		return nil, p.fail(start, p.at, problem)
	}
	return t, p.args(t, depth)
}

func (p *typeParser) args(t *TypeExpr, depth int) error {
	if p.at == len(p.text) || p.text[p.at] != '[' {
		return nil
	}
	if t.Predeclared() {
		return p.fail(p.at, len(p.text), t.Name+" must not have type arguments")
	}
	p.at++
	for {
		arg, err := p.parse(depth + 1)
		if err != nil {
			return err
		}
		t.Args = append(t.Args, *arg)
		switch {
		case p.accept("]"):
			return nil
		case !p.accept(","):
			return p.fail(p.at, p.at+1, `type arguments must be separated by "," and end with "]"`)
		}
		p.accept(" ")
	}
}

// missing returns the message for a position without a type.
func (p *typeParser) missing() string {
	rest := p.text[p.at:]
	if rest == "" {
		return "a type must follow here, got the end of the string"
	}
	return fmt.Sprintf("a type must not begin with %q", clip(rest))
}

func typeNameProblem(name string) string {
	switch {
	case token.IsKeyword(name) && slices.Contains([]string{"chan", "func", "interface", "map", "struct"}, name):
		return "a type must have a name, got a " + name + " type; declare it in Go and write its name"
	case !isIdentifier(name):
		return fmt.Sprintf("a type name must be a Go identifier, got %q", clip(name))
	case isPredeclared(name) && !isType(name):
		return name + " is not a type"
	}
	return ""
}

// importPathProblem returns the mistake in an import path by the rules of the go command, or "".
func importPathProblem(path string) string {
	if path == "C" || path == "unsafe" {
		return fmt.Sprintf("a message or processor must not have a type of the package %q", path)
	}
	if !isASCII(path) {
		return "an import path must be ASCII"
	}
	for element := range strings.SplitSeq(path, "/") {
		switch {
		case element == "":
			return fmt.Sprintf("an import path must not have an empty element, got %q", clip(path))
		case strings.Trim(element, ".") == "":
			return "an import path must not be relative"
		case element[0] == '.' || element[len(element)-1] == '.' || element[0] == '-':
			return fmt.Sprintf("an element of an import path must not begin with . or - or end with ., got %q", clip(element))
		}
	}
	return ""
}

// isPathByte reports whether c may be in an import path or, if it is ASCII, in an identifier.
// Import paths must be ASCII, because not every tool and file system preserves other
// characters.
func isPathByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c) || strings.IndexByte("-._~/+", c) >= 0
}

// isIdentifier reports whether name is a Go identifier other than _.
func isIdentifier(name string) bool { return token.IsIdentifier(name) && name != "_" }
