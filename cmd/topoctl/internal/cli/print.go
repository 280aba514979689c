package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/topogen/topogen/runtime/errtop"
)

// writeTable writes a line for each error.
func writeTable(w io.Writer, entries []errtop.Entry) error {
	const seconds = "2006-01-02T15:04:05Z"
	width := len("COUNT")
	for _, e := range entries {
		width = max(width, len(strconv.FormatUint(e.Count, 10)))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%*s  %-*s  ERROR\n", width, "COUNT", len(seconds), "LAST SEEN")
	for _, e := range entries {
		line, _, _ := strings.Cut(strings.TrimLeft(e.Text, "\n"), "\n")
		fmt.Fprintf(&b, "%*d  %-*s  %s\n", width, e.Count, len(seconds), seen(e.Last, seconds), oneLine(line))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeFull writes all of each error, set in, so that no text looks like the line
// above another.
func writeFull(w io.Writer, entries []errtop.Entry) error {
	var b bytes.Buffer
	for i, e := range entries {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d, last seen %s\n", e.Count, seen(e.Last, time.RFC3339Nano))
		for line := range strings.SplitSeq(e.Text, "\n") {
			text := strings.TrimLeft(line, "\t")
			b.WriteString(strings.TrimRight("    "+strings.Repeat("    ", len(line)-len(text))+oneLine(text), " ") + "\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeJSON writes an array of objects.
func writeJSON(w io.Writer, entries []errtop.Entry) error {
	type object struct {
		Count    uint64  `json:"count"`
		LastSeen *string `json:"last_seen"` // RFC 3339; null where the file does not say
		Text     string  `json:"text"`
	}
	list := make([]object, 0, len(entries))
	for _, e := range entries {
		o := object{Count: e.Count, Text: e.Text}
		if text := seen(e.Last, time.RFC3339Nano); text != unknown {
			o.LastSeen = &text
		}
		list = append(list, o)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(list); err != nil {
		return err
	}
	_, err := io.WriteString(w, plainJSON(b.String()))
	return err
}

// unknown is printed for a time that the file does not say.
const unknown = "-"

// seen is a time in UTC. What RFC 3339 has no form for is no time of ours.
func seen(at time.Time, layout string) string {
	at = at.UTC()
	if at.IsZero() || at.Year() < 1 || at.Year() > 9999 {
		return unknown
	}
	return at.Format(layout)
}

// oneLine returns s with codes in place of what does not print: line ends, what
// commands a terminal, what turns the direction of text.
func oneLine(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// plainJSON returns JSON that means the same, with codes in its strings in place
// of what does not print.
func plainJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || unicode.IsPrint(r): // an end of a line is between strings
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
