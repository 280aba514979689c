package finding

import (
	"unicode"

	"golang.org/x/text/width"
)

const tabWidth = 4 // of Go files, where most findings with tabs are

// runeWidth returns how many columns a terminal gives to a printable rune.
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

// printable returns a rune that does nothing to a terminal: control characters,
// and those that turn the direction of text or are invisible, are replaced.
func printable(r rune) rune {
	if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs) {
		return unicode.ReplacementChar
	}
	return r
}
