package finding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteJSON writes findings as a JSON array, which is [] without findings. Files are relative to
// dir. Lines and columns start at 1, columns count characters, and ends are exclusive. All four
// numbers are 0 if the finding is about the whole file.
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

// escaped replaces runes that are not printable with JSON escapes. Such runes occur only in
// strings.
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
