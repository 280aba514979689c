package errtop

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

const (
	textMax    = 8 << 10              // bytes: a reason and 32 calls of 190 bytes
	reasonMax  = 2 << 10              // bytes; a longer text is data, not a reason
	whereMax   = 256                  // bytes; a processor, a method and an edge
	digitsMin  = 4 + bits.UintSize/16 // 8 hexadecimal digits of an address, 6 in a process of 32 bits; a shorter number may be an error code
	cutMark    = "…"
	hexPrefix  = "0x"
	goroutines = "goroutine "
)

// textOf returns the text of a record, which identifies the record.
func textOf(where, reason, trace string) string {
	var b strings.Builder
	if where != "" {
		b.WriteString(plain(cut(where, whereMax)))
		b.WriteString(": ")
	}
	b.WriteString(plain(cut(reason, reasonMax)))
	b.WriteString(trace)
	return cut(b.String(), textMax)
}

// plain returns s as valid UTF-8, which protobuf requires, with "…" in place of addresses
// and the numbers of goroutines.
func plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.Contains(s, hexPrefix) && !strings.Contains(s, goroutines) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		prefix, n := hexPrefix, digits(s[i:], hexPrefix, isHex)
		if n < digitsMin {
			prefix, n = goroutines, digits(s[i:], goroutines, isDecimal)
		}
		if n == 0 {
			b.WriteByte(s[i])
			i++
			continue
		}
		b.WriteString(prefix + cutMark)
		i += len(prefix) + n
	}
	return b.String()
}

// digits counts the digits that follow prefix at the beginning of s.
func digits(s, prefix string, isDigit func(byte) bool) int {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return 0
	}
	n := 0
	for n < len(rest) && isDigit(rest[n]) {
		n++
	}
	return n
}

func isDecimal(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDecimal(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// cut shortens s to most bytes, between runes, and appends cutMark.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := most - len(cutMark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + cutMark
}
