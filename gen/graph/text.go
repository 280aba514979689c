package graph

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// oneLine makes a text safe for one line of any format: line breaks, tabs and the like become
// spaces, and characters that XML 1.0 cannot represent (control characters, invalid UTF-8,
// noncharacters) become U+FFFD.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\r', r == '\t', r == '\v', r == '\f', r == '\u0085', r == '\u2028', r == '\u2029':
			return ' '
		case unicode.IsControl(r), r == utf8.RuneError, r&0xFFFE == 0xFFFE, r >= 0xFDD0 && r <= 0xFDEF:
			return utf8.RuneError
		case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			return utf8.RuneError // would reorder the text that follows it
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// shortType drops import paths from a Go type expression:
// "*example.com/shop/model.Page[example.com/x.T]" is "*model.Page[x.T]".
func shortType(s string) string {
	var b strings.Builder
	start := 0
	flush := func(end int) {
		word := s[start:end]
		b.WriteString(word[strings.LastIndexByte(word, '/')+1:])
	}
	for i := range len(s) {
		if strings.IndexByte("[](),* ", s[i]) >= 0 {
			flush(i)
			b.WriteByte(s[i])
			start = i + 1
		}
	}
	flush(len(s))
	return b.String()
}

// font is a size and weight of the font of pictures.
type font struct {
	size int // pixels
	bold bool
}

// width is the width of a text, in pixels. It rounds up and uses the table of a wide font,
// because a box that is too wide looks better than text that crosses the border.
func (f font) width(s string) int {
	sum := 0
	for _, r := range s {
		sum += glyphWidth(r)
	}
	if f.bold {
		sum += sum / 12
	}
	return (sum*f.size + 99) / 100
}

// glyphWidth is a glyph's advance in hundredths of the font size.
func glyphWidth(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case strings.ContainsRune("ijlI|.,:;'!` ", r):
		return 33
	case strings.ContainsRune("ftr()[]{}/\\-\"", r):
		return 43
	case strings.ContainsRune("mMwW@%—…", r):
		return 95
	case r >= '0' && r <= '9':
		return 62
	case r >= 'A' && r <= 'Z':
		return 70
	case r < 0x80:
		return 60
	case r < 0x0590:
		return 70
	case r < 0x1100:
		return 85
	default:
		return 105 // ideographs, emoji
	}
}

// fit cuts a text that is wider than limit, and ends it with an ellipsis.
func (f font) fit(s string, limit int) string {
	if f.width(s) <= limit {
		return s
	}
	for i := len(s); i > 0; {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
		if short := strings.TrimRight(s[:i], " ") + "…"; f.width(short) <= limit {
			return short
		}
	}
	return "…"
}

// wrap breaks a note between its parts so that no line is much wider than limit. It cuts a
// part that is too wide.
func (f font) wrap(s string, limit int) []string {
	if s == "" {
		return nil
	}
	var lines []string
	line := ""
	for _, part := range strings.Split(s, ", ") {
		switch {
		case line == "":
			line = part
		case f.width(line+", "+part) <= limit:
			line += ", " + part
		default:
			lines = append(lines, f.fit(line+",", limit))
			line = part
		}
	}
	return append(lines, f.fit(line, limit))
}
