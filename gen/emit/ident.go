package emit

import (
	"fmt"
	"go/token"
	"go/types"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ident is a Go identifier. The identifiers that this package chooses are constants;
// only ParseIdent makes one from outside text.
type Ident string

// ParseIdent checks a name from outside.
func ParseIdent(name string) (Ident, error) {
	if !token.IsIdentifier(name) || name == "_" {
		return "", badName(fmt.Sprintf("%q is not a Go identifier", name))
	}
	return Ident(name), nil
}

// badName is the value of a panic that Emit turns into an error. Earlier stages reject such
// names.
type badName string

func (b badName) Error() string { return "emit: " + string(b) }

func recoverBadName(err *error) {
	switch cause := recover().(type) {
	case nil:
	case badName:
		*err = cause
	default:
		panic(cause)
	}
}

func mustIdent(name string) Ident {
	i, err := ParseIdent(name)
	if err != nil {
		panic(err)
	}
	return i
}

func mustIdents(names []string) {
	for _, name := range names {
		mustIdent(name)
	}
}

// lower is i with its first letter in lower case. A keyword or predeclared name gets
// a suffix, because a variable cannot have such a name.
func (i Ident) lower(suffix Ident) Ident {
	first, size := utf8.DecodeRuneInString(string(i))
	name := Ident(string(unicode.ToLower(first)) + string(i[size:]))
	if !name.free() {
		return name + suffix
	}
	return name
}

// upper is i with its first letter in upper case.
func (i Ident) upper() Ident {
	first, size := utf8.DecodeRuneInString(string(i))
	return Ident(string(unicode.ToUpper(first)) + string(i[size:]))
}

// free reports whether i is neither a keyword nor predeclared.
func (i Ident) free() bool { return !token.IsKeyword(string(i)) && !i.predeclared() }

// predeclared reports whether Go predeclares i, or gives it a meaning at package level.
func (i Ident) predeclared() bool {
	return types.Universe.Lookup(string(i)) != nil || i == "init" || i == "main" || i == "_"
}

// importPath checks an import path from outside by the rule of Go's parser.
func importPath(path string) (string, error) {
	const illegal = `!"#$%&'()*,:;<=>?[\]^{|}` + "`\uFFFD"
	bad := func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.IsSpace(r) || strings.ContainsRune(illegal, r)
	}
	if path == "" || strings.ContainsFunc(path, bad) {
		return "", badName(fmt.Sprintf("%q is not an import path", path))
	}
	return path, nil
}

// text makes a string from outside safe for a comment: one line, without characters
// that a terminal or a compiler could interpret.
func text(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// names is the set of names in use.
type names map[Ident]bool

// take adds name to the set, with a number appended if name is in use, and returns it.
func (n names) take(name Ident) Ident {
	free := name.firstFree(func(i Ident) bool { return n[i] })
	n[free] = true
	return free
}

// firstFree is i, or i with the smallest number from 2 that makes it unused.
func (i Ident) firstFree(taken func(Ident) bool) Ident {
	free := i
	for n := 2; taken(free); n++ {
		free = i + Ident(strconv.Itoa(n))
	}
	return free
}
