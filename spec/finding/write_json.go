package finding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonFinding is a finding as tools read it; every key is always there.
type jsonFinding struct {
	Code       string   `json:"code"`
	Severity   Severity `json:"severity"`
	File       string   `json:"file"`
	Line       int      `json:"line"`
	Column     int      `json:"column"`
	EndLine    int      `json:"end_line"`
	EndColumn  int      `json:"end_column"`
	Pointer    string   `json:"pointer"`
	Message    string   `json:"message"`
	Suggestion string   `json:"suggestion"`
}

// WriteJSON writes findings as a JSON array, [] for none. Files are relative to
// dir; lines and columns are 1-based, columns count characters, ends are
// exclusive, and all four are 0 where the whole file is meant.
func WriteJSON(w io.Writer, findings []Finding, dir string) error {
	all := make([]jsonFinding, len(findings))
	for i, f := range findings {
		all[i] = jsonFinding{
			Code: f.Code, Severity: f.Severity, File: RelativePath(dir, f.File),
			Line: f.Range.Line, Column: f.Range.Column, EndLine: f.Range.EndLine, EndColumn: f.Range.EndColumn,
			Pointer: f.Pointer, Message: f.Message, Suggestion: f.Suggestion,
		}
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
