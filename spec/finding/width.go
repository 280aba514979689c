package finding

import (
	"unicode"

	"golang.org/x/text/width"
)

const tabWidth = 4 // most lines with tabs are in Go files

// runeWidth returns the number of columns of a printable rune in a terminal.
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth: // and emoji
		return 2
	}
	return 1
}

// printable returns the rune, or a replacement for a control character, an invisible character
// or a character that changes the direction of text.
func printable(r rune) rune {
	if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs) {
		return unicode.ReplacementChar
	}
	return r
}
