package emit

import (
	"encoding/hex"
	"fmt"
	"go/token"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ident is a Go identifier. The ones that this package chooses are constants;
// one from outside is made by ParseIdent alone.
type Ident string

// ParseIdent checks a name from outside.
func ParseIdent(name string) (Ident, error) {
	if !token.IsIdentifier(name) || name == "_" {
		return "", fmt.Errorf("emit: %q is not a Go identifier", name)
	}
	return Ident(name), nil
}

// lower is i with its first letter in lower case. A word of Go's own gets a
// suffix, since it could not be a variable.
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

// free reports whether i is no word of Go's own.
func (i Ident) free() bool { return !token.IsKeyword(string(i)) && !predeclared[i] }

// predeclared are the identifiers that Go declares; the output uses some.
var predeclared = func() map[Ident]bool {
	words := make(map[Ident]bool)
	for _, word := range []Ident{
		"any", "bool", "byte", "comparable", "complex64", "complex128", "error", "float32", "float64", "int", "int8",
		"int16", "int32", "int64", "rune", "string", "uint", "uint8", "uint16", "uint32", "uint64", "uintptr",
		"true", "false", "iota", "nil", "append", "cap", "clear", "close", "complex", "copy", "delete", "imag", "len",
		"make", "max", "min", "new", "panic", "print", "println", "real", "recover", "init", "main", "_",
	} {
		words[word] = true
	}
	return words
}()

// importPath checks an import path from outside by the rule of Go's parser.
func importPath(path string) (string, error) {
	const illegal = `!"#$%&'()*,:;<=>?[\]^{|}` + "`\uFFFD"
	bad := func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.IsSpace(r) || strings.ContainsRune(illegal, r)
	}
	if path == "" || strings.ContainsFunc(path, bad) {
		return "", fmt.Errorf("emit: %q is not an import path", path)
	}
	return path, nil
}

// text is a string from outside as a comment may hold it: on one line, and
// without anything that a terminal or a compiler could take for a command.
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

// names hands out each name once.
type names map[Ident]bool

// take returns name, or name with the first number that makes it free.
func (n names) take(name Ident) Ident {
	free := name
	for i := 2; n[free]; i++ {
		free = name + number(i)
	}
	n[free] = true
	return free
}

// digits is name with the hexadecimal digits of b at its end.
func digits(name Ident, b []byte) Ident { return name + Ident(hex.EncodeToString(b)) }

// number is the end of an identifier.
func number(i int) Ident { return Ident(fmt.Sprint(i)) }
