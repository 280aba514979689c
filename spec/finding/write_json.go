package finding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteJSON writes findings as a JSON array, [] for none. Files are relative to
// dir; lines and columns are 1-based, columns count characters, ends are
// exclusive, and all four are 0 where the whole file is meant.
func WriteJSON(w io.Writer, findings []Finding, dir string) error {
	all := append([]Finding{}, findings...)
	for i := range all {
		all[i].File = RelativePath(dir, all[i].File)
	}
	return writeJSON(w, all)
}

func writeJSON(w io.Writer, v any) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // "a -> b" stays readable
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escaped(out.Bytes()))
	return err
}

// escaped writes what a terminal would obey as JSON escapes. Such runes stand in
// strings alone.
func escaped(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r == '\n' || printable(r) == r:
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
