package verify

import "bytes"

// piece is a declaration in the source of a part.
type piece struct {
	doc    []byte // its comment, in whole lines
	source []byte
	body   int // in source, where the body of a function begins; 0: it has none, or where is not clear

	use use
}

// use is what becomes of a piece when types are checked.
type use uint8

const (
	whole   use = iota
	head        // of a function: its body is like one that is checked
	dropped     // likewise, and nobody mentions it
)

// split takes the source of the part apart. One that it does not understand stays
// whole.
func (p *part) split() {
	preamble, pieces, ok := split(p.source)
	if !ok {
		return
	}
	p.preamble, p.pieces = preamble, pieces
	for i := range pieces {
		p.declare(&pieces[i])
	}
}

// split takes source, as emit writes it, apart: what stands before the first
// declaration that is no import, and the declarations. It reports false where it
// is not sure.
func split(source []byte) (preamble []byte, pieces []piece, ok bool) {
	preamble = source
	doc, from, depth, body := -1, -1, 0, 0
	end := func(at int) {
		text := source[from:at]
		if bytes.HasPrefix(text, []byte("package ")) || bytes.HasPrefix(text, []byte("import ")) {
			preamble = source[:at]
		} else {
			p := piece{source: text, body: body}
			if doc >= 0 {
				p.doc = source[doc:from]
			}
			pieces = append(pieces, p)
		}
		doc, from, body = -1, -1, 0
	}
	for at := 0; at < len(source); at++ {
		c := source[at]
		if from < 0 && c != '\n' && c != '/' {
			from = at
		}
		switch c {
		case '\n':
			if from >= 0 && depth == 0 {
				end(at)
			} else if from < 0 && (at == 0 || source[at-1] == '\n') {
				if doc >= 0 {
					return nil, nil, false // that comment belongs to nothing
				}
			}
		case '(', '[':
			depth++
		case '{':
			if depth == 0 && body == 0 && bytes.HasPrefix(source[from:], []byte("func ")) {
				if before := bytes.TrimRight(source[from:at], " "); !bytes.HasSuffix(before, []byte("interface")) && !bytes.HasSuffix(before, []byte("struct")) {
					body = at - from
				}
			}
			depth++
		case ')', ']', '}':
			depth--
		case '"', '`', '\'':
			length := quoted(source[at:])
			if length == 0 {
				return nil, nil, false
			}
			at += length - 1
		case '/':
			if !bytes.HasPrefix(source[at:], []byte("//")) {
				if from < 0 || bytes.HasPrefix(source[at:], []byte("/*")) {
					return nil, nil, false
				}
				continue
			}
			if from < 0 && doc < 0 {
				doc = at
			}
			length := bytes.IndexByte(source[at:], '\n')
			if length < 0 {
				return nil, nil, false
			}
			at += length - 1 // the end of the line is looked at
			if from < 0 {
				at++
			}
		}
	}
	if from >= 0 && depth == 0 {
		end(len(source))
	}
	return preamble, pieces, depth == 0
}

// quoted is the length of the string or rune that source begins with; 0: it does
// not end.
func quoted(source []byte) int {
	for at := 1; at < len(source); at++ {
		switch source[at] {
		case source[0]:
			return at + 1
		case '\\':
			if source[0] != '`' {
				at++
			}
		}
	}
	return 0
}
