package main

import (
	"strings"
	"unicode"
)

// Splitter cuts chunks into words. It keeps nothing between two messages.
type Splitter struct{}

// ReceiveChunk sends every word to the counter that counts it: `key: Text` chooses
// the same one for the same word.
func (Splitter) ReceiveChunk(m Chunk, out *SplitterSender) {
	notLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	for word := range strings.FieldsFuncSeq(strings.ToLower(m.Text), notLetter) {
		out.SendWord(Word{word})
	}
}
