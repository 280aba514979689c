// Package lines converts positions in a text between lines and columns, runes and bytes.
package lines

import (
	"bytes"
	"sort"
	"unicode/utf8"
)

// markStep is the distance in bytes between two offsets for which a Text stores the number of
// runes before them. A look-up in a long line counts at most that many bytes.
const markStep = 512

// ByteOrderMark may be at the start of a text in UTF-8.
var ByteOrderMark = []byte("\xef\xbb\xbf")

// Text is a text with the offsets of its lines. The parser works with byte offsets. Text converts
// the positions of the YAML library to offsets, and offsets to the positions of an editor. The
// two count lines differently: for YAML a line also ends at U+0085, U+2028 and U+2029.
type Text struct {
	Bytes     []byte // without a byte order mark
	YAMLLines []int  // offset of each line as YAML counts lines
	Lines     []int  // offset of each line as editors count lines
	marks     []int  // runes before offset i*markStep; nil if the text is ASCII
}

// New returns the text without its byte order mark.
func New(text []byte) *Text {
	s := &Text{Bytes: bytes.TrimPrefix(text, ByteOrderMark)}
	s.Lines, s.YAMLLines = lineStarts(s.Bytes)
	for _, b := range s.Bytes {
		if b >= utf8.RuneSelf {
			s.marks = runeMarks(s.Bytes)
			break
		}
	}
	return s
}

func lineStarts(text []byte) (lines, yamlLines []int) {
	lines, yamlLines = []int{0}, []int{0}
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		i += size
		switch {
		case r == '\r' && i < len(text) && text[i] == '\n': // the line ends at \n
		case r == '\n', r == '\r':
			lines, yamlLines = append(lines, i), append(yamlLines, i)
		case r == '\u0085', r == '\u2028', r == '\u2029':
			yamlLines = append(yamlLines, i)
		}
	}
	return lines, yamlLines
}

func runeMarks(text []byte) []int {
	marks := make([]int, 0, len(text)/markStep+1)
	count := 0
	for i, b := range text {
		if i%markStep == 0 {
			marks = append(marks, count)
		}
		if utf8.RuneStart(b) {
			count++
		}
	}
	return marks
}

// RunesBefore returns the number of runes that begin before offset.
func (s *Text) RunesBefore(offset int) int {
	if s.marks == nil {
		return offset
	}
	i := min(offset/markStep, len(s.marks)-1)
	count := s.marks[i]
	for _, b := range s.Bytes[i*markStep : offset] {
		if utf8.RuneStart(b) {
			count++
		}
	}
	return count
}

// RuneOffset returns the offset of the rune with the given number of runes before it.
func (s *Text) RuneOffset(runes int) int {
	if s.marks == nil {
		return min(runes, len(s.Bytes))
	}
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i] > runes }) - 1
	count := s.marks[i]
	for offset := i * markStep; offset < len(s.Bytes); offset++ {
		if utf8.RuneStart(s.Bytes[offset]) {
			if count == runes {
				return offset
			}
			count++
		}
	}
	return len(s.Bytes)
}

// Offset returns the offset of a position of the YAML library, which starts at 1.
func (s *Text) Offset(line, column int) int {
	if line < 1 || line > len(s.YAMLLines) {
		return len(s.Bytes)
	}
	return s.RuneOffset(s.RunesBefore(s.YAMLLines[line-1]) + max(column, 1) - 1)
}

// Position returns the line and the column of an offset. Both start at 1.
func (s *Text) Position(offset int) (line, column int) {
	line = sort.SearchInts(s.Lines, offset+1)
	return line, s.RunesBefore(offset) - s.RunesBefore(s.Lines[line-1]) + 1
}

// LineEnd returns the offset of the line break at or after offset.
func (s *Text) LineEnd(offset int) int {
	return s.EndOfLine(sort.SearchInts(s.Lines, offset+1))
}

// EndOfLine returns the offset of the line break at the end of a line. Lines start at 1. The
// function does not scan the line, which may be long.
func (s *Text) EndOfLine(line int) int {
	if line >= len(s.Lines) {
		return len(s.Bytes)
	}
	end := s.Lines[line] - 1
	if end > s.Lines[line-1] && s.Bytes[end] == '\n' && s.Bytes[end-1] == '\r' {
		end--
	}
	return end
}
