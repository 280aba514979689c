package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/topogen/topogen/spec/finding"
	"github.com/topogen/topogen/spec/internal/lines"
	"gopkg.in/yaml.v3"
)

// document parses the file and returns the root node of its only document, or nil after a
// finding.
func document(s source, found *collector) *yaml.Node {
	if at := invalidUTF8(s.Bytes); at >= 0 {
		found.add(finding.Syntax, s.span(at, at+1), "", "a topology file must be UTF-8, got an invalid byte", "save the file as UTF-8")
		return nil
	}
	if at := tooDense(s.Bytes); at >= 0 {
		found.add(finding.Limit, s.span(at, at+1), "", fmt.Sprintf("a topology file must have at most %d keys and values, got more", nodesMax), "split the topology")
		return nil
	}
	if bytes.HasPrefix(s.Bytes, lines.ByteOrderMark) { // the library would ignore it
		found.add(finding.Syntax, s.span(0, len(lines.ByteOrderMark)), "", "a topology file must have at most one byte order mark, got two", "delete one of them")
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(s.Bytes))
	var first, second yaml.Node
	err := decode(decoder, &first)
	if errors.Is(err, io.EOF) || err == nil && isEmpty(&first) {
		found.add(finding.Empty, finding.Range{}, "", "a topology file must not be empty", `begin with "version: 1"`)
		return nil
	}
	if err != nil {
		syntaxFinding(s, found, err)
		return nil
	}
	switch err := decode(decoder, &second); {
	case err == nil:
		at := s.Offset(second.Line, second.Column)
		found.add(finding.Documents, s.span(at, s.LineEnd(at)), "", "a topology file must hold one document, got a second one", "move it to its own file")
		return nil
	case !errors.Is(err, io.EOF):
		syntaxFinding(s, found, err)
		return nil
	}
	return first.Content[0]
}

// tooDense returns the offset at which the text has more indicators of YAML than a valid file
// can have, or -1. The library takes up to 400 bytes of memory for each indicator, so it must
// not read 4 MiB of dashes.
func tooDense(text []byte) int {
	count := 0
	for i, c := range text {
		switch c {
		case ',', '[', '{':
			count++
		case '-', ':', '?':
			if i+1 == len(text) || isBlank(text[i+1]) {
				count++
			}
		}
		if count > indicatorsMax {
			return i
		}
	}
	return -1
}

// decode reads the next document. It recovers panics, because the library has no maintainer
// and may panic on an unusual file.
func decode(decoder *yaml.Decoder, node *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: %v", p)
		}
	}()
	return decoder.Decode(node)
}

func isEmpty(n *yaml.Node) bool {
	return len(n.Content) == 0 || n.Content[0].Kind == yaml.ScalarNode && n.Content[0].ShortTag() == "!!null"
}

func invalidUTF8(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

var (
	yamlErrorForm     = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	unknownAnchorForm = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// syntaxFinding reports an error of the library. Such an error has at most a line, which is
// sometimes one too early. If the text shows the reason, the finding is at that position.
// Otherwise the range is empty, and the printers show the lines around it.
func syntaxFinding(s source, found *collector, err error) {
	message, line := err.Error(), 1
	if m := yamlErrorForm.FindStringSubmatch(message); m != nil {
		message = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	if strings.HasPrefix(message, "did not find expected") {
		line++ // in these messages the library counts lines from 0
	}
	line = min(max(line, 1), len(s.YAMLLines))
	if m := unknownAnchorForm.FindStringSubmatch(message); m != nil {
		at := finding.Range{}
		if i := aliasIn(s.Bytes, m[1]); i >= 0 {
			at = s.span(i, i+1+len(m[1]))
		}
		found.add(finding.Alias, at, "", fmt.Sprintf("an alias must follow its anchor, got *%[1]s without &%[1]s before it", clip(m[1])), "")
		return
	}
	if strings.HasPrefix(message, "exceeded max depth") {
		found.add(finding.Limit, s.span(s.YAMLLines[line-1], s.YAMLLines[line-1]), "", fmt.Sprintf("values must be nested at most %d deep, got more", depthMax), "")
		return
	}
	if i := indentingTab(s, line); i >= 0 {
		found.add(finding.Syntax, s.span(i, i+1), "", "YAML must be indented with spaces, got a tab", "replace the tab with spaces")
		return
	}
	if message == "control characters are not allowed" {
		if i := bytes.IndexFunc(s.Bytes, isControl); i >= 0 {
			found.add(finding.Syntax, s.span(i, i+1), "", "YAML must not contain control characters", "delete this one")
			return
		}
	}
	suggestion := ""
	if plain, ok := plainWords[message]; ok {
		message, suggestion = plain[0], plain[1]
	} else {
		message = "the file is not valid YAML: " + message
	}
	start := s.YAMLLines[line-1]
	found.add(finding.Syntax, s.span(start, start), "", message, suggestion)
}

// plainWords replaces the messages of the library for the most frequent mistakes. Their line is
// the line on which the collection begins, or the line on which parsing stopped if the
// collection begins on the first line.
var plainWords = map[string][2]string{
	"mapping values are not allowed in this context": {"this line has a second colon, or the line before it is incomplete", "put a string with a colon in quotes"},
	"did not find expected ',' or '}'":               {"a mapping in braces must have , or } after each value, here or below", "close the bracket, or put a type such as Page[string] in quotes"},
	"did not find expected ',' or ']'":               {"a list in brackets must have , or ] after each item, here or below", "close the bracket"},
	"did not find expected key":                      {"a mapping must continue with a key, here or below", "check the indentation, and close every quote"},
	"did not find expected '-' indicator":            {"a list must continue with an item, here or below", "check the indentation"},
	"found unexpected end of stream":                 {"a string in quotes must have an end", "close the quote"},
	"could not find expected ':'":                    {"a key must have a colon after it, on this line", "write the colon"},
}

func isControl(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r <= 0x9f && r != 0x85 || r == 0xfeff || r == 0xfffe || r == 0xffff
}

// indentingTab returns the offset of a tab in the indentation of the line, the next or the
// previous line, or -1.
func indentingTab(s source, line int) int {
	for _, l := range []int{line, line + 1, line - 1} {
		if l < 1 || l > len(s.YAMLLines) {
			continue
		}
		start := s.YAMLLines[l-1]
		text := s.Bytes[start:s.LineEnd(start)]
		indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
		if i := bytes.IndexByte(indent, '\t'); i >= 0 && len(indent) < len(text) {
			return start + i
		}
	}
	return -1
}

// aliasIn returns the offset of the first alias with the name, or -1.
func aliasIn(text []byte, name string) int {
	want := []byte("*" + name)
	for from := 0; ; {
		i := bytes.Index(text[from:], want)
		if i < 0 {
			return -1
		}
		end := from + i + len(want)
		if end == len(text) || isBlank(text[end]) || strings.IndexByte(",]}:", text[end]) >= 0 {
			return from + i
		}
		from = end
	}
}
