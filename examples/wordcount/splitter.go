package main

import (
	"strings"
	"unicode"
)

// Splitter cuts chunks into words. It has no state.
type Splitter struct{}

// ReceiveChunk sends every word to the counter of that word, which is chosen by `key:
// Text`.
func (Splitter) ReceiveChunk(m Chunk, out *SplitterSender) {
	notLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	for word := range strings.FieldsFuncSeq(strings.ToLower(m.Text), notLetter) {
		out.SendWord(Word{word})
	}
}
