package wire

import (
	"fmt"
	"go/token"
)

// Problem is why a message cannot be encoded, or what is wrong with its numbers.
type Problem struct {
	Root       string    // the topology's message; "" where the file of numbers is meant
	Path       string    // Order.Lines[].Item; "" for the file as a whole
	Pos        token.Pos // of the field in Go, where known
	Line       int       // in the file of numbers; 0: none
	Message    string
	Suggestion string
}

func (p Problem) String() string {
	text := p.Message
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	if p.Line > 0 {
		text = fmt.Sprintf("line %d: %s", p.Line, text)
	}
	return text
}
