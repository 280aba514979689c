package verify

import (
	"bytes"
	"unicode/utf8"
)

// forms prints declarations. Most of what is generated differs in nothing but
// names, and where names have no part in the layout, gofmt lays out one as it
// does the other: a form is printed once and filled in from then on.
type forms struct {
	known map[string]*form
	key   []byte   // of the declaration that is looked at
	words [][]byte // its words
}

// form is a formatted declaration with gaps in place of its words.
type form struct {
	between []string // the text before, between and behind the words
}

// oneLineMax is the size up to which gofmt leaves a function on one line.
const oneLineMax = 100

// format appends the declaration in source as gofmt does it, without its doc
// comment. Print appends it in the long way, for a form that is not known yet.
func (f *forms) format(b *bytes.Buffer, source []byte, print func() error) error {
	if !f.read(source) {
		return print()
	}
	oneLine := !bytes.Contains(source, []byte("\n"))
	known := f.known[string(f.key)]
	if known != nil && (!oneLine || known.size(f.words) <= oneLineMax) {
		known.fill(b, f.words)
		return nil
	}
	from := b.Len()
	if err := print(); err != nil || known != nil {
		return err
	}
	if text := b.Bytes()[from:]; !oneLine || len(text) <= oneLineMax {
		if made := newForm(text, f.words); made != nil {
			f.known[string(f.key)] = made
		}
	}
	return nil
}

// read takes source apart into words, which may differ, and the key, which holds
// all the rest. It reports false where the layout may depend on the words: what
// stands in columns, as comments and lists over several lines do.
func (f *forms) read(source []byte) bool {
	f.key, f.words = f.key[:0], f.words[:0]
	if bytes.Contains(source, []byte(",\n")) {
		return false
	}
	return scan(source, func(between, word []byte) {
		f.key = append(append(f.key, between...), 0)
		f.words = append(f.words, word)
	})
}

// newForm makes a form of the text of a declaration with these words; nil where
// it is not made of them.
func newForm(text []byte, words [][]byte) *form {
	made, matches := &form{}, true
	plain := scan(text, func(between, word []byte) {
		at := len(made.between)
		matches = matches && at < len(words) && bytes.Equal(words[at], word)
		made.between = append(made.between, string(between))
	})
	if !plain || !matches || len(made.between) != len(words) {
		return nil
	}
	return made
}

func (f *form) size(words [][]byte) int {
	size := 0
	for i, between := range f.between {
		size += len(between) + len(words[i])
	}
	return size
}

func (f *form) fill(b *bytes.Buffer, words [][]byte) {
	b.Grow(f.size(words))
	for i, between := range f.between {
		b.WriteString(between)
		b.Write(words[i])
	}
}

// scan calls found for each word of source, that is each identifier, string and
// decimal number, with what stands before it, keywords among that; and at last
// for what is left, with no word. It stops and reports false at what is none of
// these: comments, raw strings, runes and other numbers.
func scan(source []byte, found func(between, word []byte)) bool {
	from := 0
	for at := 0; at < len(source); {
		end := at
		switch c := source[at]; {
		case c == '"':
			length := quoted(source[at:])
			if length == 0 {
				return false
			}
			end += length
		case isWord(c):
			end += wordLength(source[at:])
			if isDigit(c) && !isDecimal(source[at:end]) {
				return false
			}
			if isKeyword(source[at:end]) {
				at = end
				continue
			}
		case c == '`' || c == '\'' || c == '/' || c == 0:
			return false
		default:
			at++
			continue
		}
		found(source[from:at], source[at:end])
		at, from = end, end
	}
	found(source[from:], nil)
	return true
}

// wordLength is how long the word is that source begins with.
func wordLength(source []byte) int {
	length := 0
	for length < len(source) && isWord(source[length]) {
		length++
	}
	return length
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || isDigit(c) || c >= utf8.RuneSelf
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isDecimal reports whether gofmt leaves a number as it is.
func isDecimal(number []byte) bool {
	for _, c := range number {
		if !isDigit(c) {
			return false
		}
	}
	return number[0] != '0' || len(number) == 1
}

// isKeyword is token.IsKeyword without a string being made.
func isKeyword(word []byte) bool {
	switch string(word) {
	case "break", "case", "chan", "const", "continue", "default", "defer", "else", "fallthrough", "for", "func", "go", "goto",
		"if", "import", "interface", "map", "package", "range", "return", "select", "struct", "switch", "type", "var":
		return true
	}
	return false
}
