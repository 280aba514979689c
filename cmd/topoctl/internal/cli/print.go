package cli

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/topogen/topogen/runtime/errtop"
)

// The functions below write one error at a time, because the output may be many
// times as large as the file: characters that do not print become codes. They reuse the
// memory of a text for the next one: a busy host collects garbage late, and would have much
// more garbage than errors in memory.

// writeTable writes a line for each error.
func writeTable(w io.Writer, entries []errtop.Entry) error {
	const seconds = "2006-01-02T15:04:05Z"
	width := len("COUNT")
	for _, e := range entries {
		width = max(width, len(strconv.FormatUint(e.Count, 10)))
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%*s  %-*s  ERROR\n", width, "COUNT", len(seconds), "LAST SEEN")
	var b []byte
	for _, e := range entries {
		line, _, _ := strings.Cut(strings.TrimLeft(e.Text, "\n"), "\n")
		b = fmt.Appendf(b[:0], "%*d  %-*s  ", width, e.Count, len(seconds), seen(e.Last, seconds))
		b = append(appendPlain(b, line), '\n')
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	return out.Flush()
}

// writeFull writes the full text of each error. The text is indented, so that it
// cannot look like the heading of another error.
func writeFull(w io.Writer, entries []errtop.Entry) error {
	const indent = "    "
	var b []byte
	for i, e := range entries {
		b = b[:0]
		if i > 0 {
			b = append(b, '\n')
		}
		b = fmt.Appendf(b, "%d, last seen %s\n", e.Count, seen(e.Last, time.RFC3339Nano))
		for line := range strings.SplitSeq(e.Text, "\n") {
			text := strings.TrimLeft(line, "\t")
			for range 1 + len(line) - len(text) {
				b = append(b, indent...)
			}
			b = append(bytes.TrimRight(appendPlain(b, text), " "), '\n')
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON writes an array of objects.
func writeJSON(w io.Writer, entries []errtop.Entry) error {
	type object struct {
		Count    uint64  `json:"count"`
		LastSeen *string `json:"last_seen"` // RFC 3339; null if the file has no time
		Text     string  `json:"text"`
	}
	if len(entries) == 0 {
		_, err := io.WriteString(w, "[]\n")
		return err
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("  ", "  ")
	var b []byte
	before := "[\n  "
	for _, e := range entries {
		o := object{Count: e.Count, Text: e.Text}
		if text := seen(e.Last, time.RFC3339Nano); text != unknown {
			o.LastSeen = &text
		}
		buffer.Reset()
		if err := encoder.Encode(o); err != nil {
			return err
		}
		b = appendPlainJSON(append(b[:0], before...), bytes.TrimSuffix(buffer.Bytes(), []byte("\n")))
		if _, err := w.Write(b); err != nil {
			return err
		}
		before = ",\n  "
	}
	_, err := io.WriteString(w, "\n]\n")
	return err
}

// unknown is printed in place of a missing value.
const unknown = "-"

// seen formats a time in UTC. It returns unknown for a time outside of the range of
// RFC 3339, which topogen never records.
func seen(at time.Time, layout string) string {
	at = at.UTC()
	if at.IsZero() || at.Year() < 1 || at.Year() > 9999 {
		return unknown
	}
	return at.Format(layout)
}

// oneLine returns s with codes in place of characters that do not print: line ends,
// characters that control a terminal or change the direction of text.
func oneLine(s string) string { return string(appendPlain(nil, s)) }

func appendPlain(b []byte, s string) []byte {
	for _, r := range s {
		if unicode.IsPrint(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		from := len(b)
		b = strconv.AppendQuoteRune(b, r)
		b = append(b[:from], b[from+1:len(b)-1]...) // without the quotes
	}
	return b
}

// appendPlainJSON appends JSON that is equivalent to s, in which codes replace the
// characters of strings that do not print.
func appendPlainJSON(b, s []byte) []byte {
	from := 0 // start of the printable part that is not copied yet
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		r, size = utf8.DecodeRune(s[i:])
		if r == '\n' || unicode.IsPrint(r) { // in JSON, line ends occur only between strings
			continue
		}
		b = append(b, s[from:i]...)
		from = i + size
		if r > 0xFFFF {
			high, low := utf16.EncodeRune(r)
			b = appendUnit(appendUnit(b, high), low)
		} else {
			b = appendUnit(b, r)
		}
	}
	return append(b, s[from:]...)
}

// appendUnit appends the code of one UTF-16 unit.
func appendUnit(b []byte, unit rune) []byte {
	return hex.AppendEncode(append(b, `\u`...), []byte{byte(unit >> 8), byte(unit)})
}
