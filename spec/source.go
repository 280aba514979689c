package spec

import (
	"bytes"
	"sort"
	"unicode/utf8"
)

// markStep is the distance in bytes between two points at which a source
// remembers how many runes came before: the price of a look-up in a long line.
const markStep = 512

var byteOrderMark = []byte("\xef\xbb\xbf")

// source is the text of a topology. The walk works in byte offsets; source
// translates them from the positions that the YAML library gives and to the
// ranges that people read. The two count lines differently: YAML also breaks
// lines at U+0085, U+2028 and U+2029, editors do not.
type source struct {
	text      []byte // without a byte order mark
	yamlLines []int  // offset of each line as YAML counts
	lines     []int  // offset of each line as editors count
	marks     []int  // runes before offset i*markStep; nil: all ASCII
}

func newSource(text []byte) *source {
	s := &source{text: bytes.TrimPrefix(text, byteOrderMark)}
	s.lines, s.yamlLines = lineStarts(s.text)
	for _, b := range s.text {
		if b >= utf8.RuneSelf {
			s.marks = runeMarks(s.text)
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
		case r == '\r' && i < len(text) && text[i] == '\n': // the break is counted at \n
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

// runesBefore returns the number of runes that begin before offset.
func (s *source) runesBefore(offset int) int {
	if s.marks == nil {
		return offset
	}
	i := min(offset/markStep, len(s.marks)-1)
	count := s.marks[i]
	for _, b := range s.text[i*markStep : offset] {
		if utf8.RuneStart(b) {
			count++
		}
	}
	return count
}

// runeOffset returns the offset of the rune before which runes others begin.
func (s *source) runeOffset(runes int) int {
	if s.marks == nil {
		return min(runes, len(s.text))
	}
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i] > runes }) - 1
	count := s.marks[i]
	for offset := i * markStep; offset < len(s.text); offset++ {
		if utf8.RuneStart(s.text[offset]) {
			if count == runes {
				return offset
			}
			count++
		}
	}
	return len(s.text)
}

// offset translates a 1-based position of the YAML library.
func (s *source) offset(line, column int) int {
	if line < 1 || line > len(s.yamlLines) {
		return len(s.text)
	}
	return s.runeOffset(s.runesBefore(s.yamlLines[line-1]) + max(column, 1) - 1)
}

// span returns the range from one offset to another.
func (s *source) span(start, end int) Range {
	var r Range
	r.Line, r.Column = s.position(start)
	r.EndLine, r.EndColumn = s.position(max(start, end))
	return r
}

func (s *source) position(offset int) (line, column int) {
	line = sort.SearchInts(s.lines, offset+1)
	return line, s.runesBefore(offset) - s.runesBefore(s.lines[line-1]) + 1
}

// lineEnd returns the offset of the line break at or after offset.
func (s *source) lineEnd(offset int) int {
	return s.endOfLine(sort.SearchInts(s.lines, offset+1))
}

// endOfLine returns the offset of the break that ends a line, 1-based. It looks
// at the break alone: lines may be long.
func (s *source) endOfLine(line int) int {
	if line >= len(s.lines) {
		return len(s.text)
	}
	end := s.lines[line] - 1
	if end > s.lines[line-1] && s.text[end] == '\n' && s.text[end-1] == '\r' {
		end--
	}
	return end
}
