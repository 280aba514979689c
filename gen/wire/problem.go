package wire

import (
	"bytes"
	"fmt"
	"go/token"
	"unicode/utf8"

	"github.com/topogen/topogen/spec/finding"
)

// Problem says why a message cannot be encoded, or what is wrong with its field numbers.
type Problem struct {
	Root       string    // the topology's message; "" for a problem of the file of numbers
	Path       string    // Order.Lines[].Item; "" for the file as a whole
	Pos        token.Pos // position of the field in Go; if another package declares it, of the field that contains it
	Field      string    // name of the field
	Line       int       // line in the file of numbers; 0: none
	Message    string
	Suggestion string
}

func (p Problem) String() string {
	text := p.text()
	if p.Line > 0 {
		text = fmt.Sprintf("line %d: %s", p.Line, text)
	}
	return text
}

func (p Problem) text() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// Finding turns the problem into a finding in the file of numbers with these contents.
func (p Problem) Finding(file string, content []byte) finding.Finding {
	at := finding.Range{}
	if p.Line > 0 {
		line := bytes.TrimRight(lineOf(content, p.Line), " \t\r\n")
		at = finding.Range{Line: p.Line, Column: 1, EndLine: p.Line, EndColumn: max(2, utf8.RuneCount(line)+1)}
	}
	return finding.New(finding.FieldNumbers, file, at, "", p.text(), p.Suggestion)
}

func lineOf(content []byte, number int) []byte {
	for line := range bytes.Lines(content) {
		if number--; number == 0 {
			return line
		}
	}
	return nil
}
