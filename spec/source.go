package spec

import (
	"bytes"
	"unicode/utf8"

	"github.com/topogen/topogen/spec/finding"
	"github.com/topogen/topogen/spec/internal/lines"
	"gopkg.in/yaml.v3"
)

// source is the text of a topology.
type source struct{ *lines.Text }

func newSource(text []byte) source { return source{lines.New(text)} }

// span returns the range from one offset to another.
func (s source) span(start, end int) finding.Range {
	var r finding.Range
	r.Line, r.Column = s.Position(start)
	r.EndLine, r.EndColumn = s.Position(max(start, end))
	return r
}

// The YAML library gives the position at which a node begins, which includes its anchor and tag,
// but not the position at which it ends. These functions find the rest in the text. They do
// not fail: if the text differs from what they expect, they return a position near the start.

// contentStart returns the offset of the content of a node, after its anchor and tag.
func (s source) contentStart(n *yaml.Node) int {
	at := s.Offset(n.Line, n.Column)
	if n.Kind == yaml.AliasNode || n.Anchor == "" && n.Style&yaml.TaggedStyle == 0 {
		return at
	}
	for properties := 0; properties < 2 && at < len(s.Bytes); properties++ {
		if c := s.Bytes[at]; c != '&' && c != '!' {
			break
		}
		for at < len(s.Bytes) && !isBlank(s.Bytes[at]) {
			at++
		}
		at = s.skipBlanks(at)
	}
	return at
}

// skipBlanks returns the first offset from at on that is neither white space nor in a comment.
func (s source) skipBlanks(at int) int {
	for at < len(s.Bytes) {
		switch {
		case isBlank(s.Bytes[at]):
			at++
		case s.Bytes[at] == '#' && at > 0 && isBlank(s.Bytes[at-1]):
			at = s.LineEnd(at)
		default:
			return at
		}
	}
	return at
}

// scalarEnd returns the offset after a scalar that begins at start. For a block scalar, and for
// a plain scalar of several lines, it returns the end of the first line, because a finding
// underlines one line.
func (s source) scalarEnd(n *yaml.Node, start int) int {
	rest := s.Bytes[start:]
	switch {
	case len(rest) == 0:
		return start
	case n.Style&yaml.DoubleQuotedStyle != 0 && rest[0] == '"':
		for i := 1; i < len(rest); i++ {
			switch rest[i] {
			case '\\':
				i++
			case '"':
				return start + i + 1
			}
		}
	case n.Style&yaml.SingleQuotedStyle != 0 && rest[0] == '\'':
		for i := 1; i < len(rest); i++ {
			if rest[i] != '\'' {
				continue
			}
			if i+1 < len(rest) && rest[i+1] == '\'' {
				i++
				continue
			}
			return start + i + 1
		}
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0:
		if bytes.HasPrefix(rest, []byte(n.Value)) {
			return start + len(n.Value)
		}
	}
	return start + len(bytes.TrimRight(s.Bytes[start:s.LineEnd(start)], " \t"))
}

// aliasEnd returns the offset after "*name".
func (s source) aliasEnd(n *yaml.Node, start int) int {
	return min(start+1+len(n.Value), len(s.Bytes))
}

// flowEnd returns the offset after the bracket that closes a flow collection
// whose last element ends at or before at.
func (s source) flowEnd(at int, closing byte) int {
	for next := at; next < len(s.Bytes); {
		next = s.skipBlanks(next)
		switch {
		case next >= len(s.Bytes):
			return at
		case s.Bytes[next] == closing:
			return next + 1
		case s.Bytes[next] == ',', s.Bytes[next] == ':':
			next++
		default:
			return at
		}
	}
	return at
}

func isBlank(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r'
}

// within returns the range of t.Value[start:end]. It is exact if the text is on one line, plain
// or in quotes without escapes. Otherwise it is the range of t.
func (t Text) within(start, end int) finding.Range {
	width := utf8.RuneCountInString(t.Value)
	shift := 0
	switch {
	case t.At.Line != t.At.EndLine:
		return t.At
	case t.At.EndColumn-t.At.Column == width:
	case t.At.EndColumn-t.At.Column == width+2:
		shift = 1 // a quote on each side and no escapes
	default:
		return t.At
	}
	r := t.At
	r.EndColumn = r.Column + shift + utf8.RuneCountInString(t.Value[:end])
	r.Column += shift + utf8.RuneCountInString(t.Value[:start])
	return r
}

// part returns t.Value[start:end] with its position.
func (t Text) part(start, end int) Text {
	return Text{Value: t.Value[start:end], At: t.within(start, end), Pointer: t.Pointer}
}
