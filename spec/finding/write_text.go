package finding

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/topogen/topogen/spec/internal/lines"
)

const (
	gutterMin    = 5   // columns for the line number
	excerptWidth = 160 // columns of a source line; a longer line is cut around the range
	excerptLead  = 40  // columns before the range in a line that is cut
)

// palette holds escape sequences of a terminal, or empty strings.
type palette struct{ bold, red, yellow, green, dim, reset string }

func newPalette(color bool) palette {
	if !color {
		return palette{}
	}
	return palette{bold: "\x1b[1m", red: "\x1b[1;31m", yellow: "\x1b[1;33m", green: "\x1b[1;32m", dim: "\x1b[2m", reset: "\x1b[0m"}
}

func (p palette) of(s Severity) string {
	if s == Warning {
		return p.yellow
	}
	return p.red
}

// WriteText writes findings for people: position, severity, code and sentence, then the source
// line with the range underlined. sources holds the texts of files by Finding.File. A finding
// in another file has no excerpt. With color, the output has escape sequences for a terminal.
// Escape sequences in the files are always replaced.
func WriteText(w io.Writer, findings []Finding, sources map[string][]byte, color bool) error {
	out := bufio.NewWriter(w)
	colors := newPalette(color)
	read := map[string]*lines.Text{}
	for _, f := range findings {
		out.WriteString(colors.bold + harmless(f.place()) + ": " + colors.reset)
		out.WriteString(colors.of(f.Severity) + string(f.Severity) + " " + f.Code + colors.reset)
		out.WriteString(": " + colors.bold + harmless(f.sentence()) + colors.reset + "\n")
		text, ok := sources[f.File]
		if !ok || f.Range.Line < 1 {
			continue
		}
		if read[f.File] == nil {
			read[f.File] = lines.New(text)
		}
		writeExcerpt(out, read[f.File], f.Range, colors)
	}
	return out.Flush()
}

// place returns "file:line:column", or only the file.
func (f Finding) place() string {
	if f.Range.Line < 1 {
		return f.File
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Range.Line, f.Range.Column)
}

// sentence returns the message with the suggestion after it.
func (f Finding) sentence() string {
	if f.Suggestion == "" {
		return f.Message
	}
	return f.Message + "; " + f.Suggestion
}

// writeExcerpt writes the first line of the range and underlines the range. An empty range is only
// an estimate, so the lines around it are written without an underline.
func writeExcerpt(out *bufio.Writer, s *lines.Text, r Range, colors palette) {
	first, last := r.Line, r.Line
	empty := r.EndLine < r.Line || r.EndLine == r.Line && r.EndColumn <= r.Column
	if empty {
		first, last = max(r.Line-1, 1), r.Line+1
	}
	gutter := max(gutterMin, len(strconv.Itoa(last)))
	for line := first; line <= min(last, len(s.Lines)); line++ {
		if line == len(s.Lines) && line > r.Line && s.Lines[line-1] == len(s.Bytes) {
			break // there is no line after the last line break
		}
		text, indent, width := excerpt(s, line, r)
		writeRow(out, fmt.Sprintf("%s%*d |%s", colors.dim, gutter, line, colors.reset), text)
		if !empty {
			writeRow(out, fmt.Sprintf("%s%*s |%s", colors.dim, gutter, "", colors.reset),
				strings.Repeat(" ", indent)+colors.green+strings.Repeat("^", max(width, 1))+colors.reset)
		}
	}
}

// writeRow writes a line without white space at its end.
func writeRow(out *bufio.Writer, gutter, text string) {
	if text = strings.TrimRight(text, " "); text != "" {
		gutter += " " + text
	}
	out.WriteString(gutter + "\n")
}

// excerpt returns a line for a terminal, the number of columns before the range and the number of
// columns of the range. Tabs become spaces, wide runes count as two columns, and a long line is
// cut around the range.
func excerpt(s *lines.Text, line int, r Range) (text string, indent, width int) {
	start, end := r.Column-1, math.MaxInt
	if r.EndLine == r.Line {
		end = r.EndColumn - 1
	}
	at, stop := s.Lines[line-1], s.EndOfLine(line)
	var out strings.Builder
	column := 0 // in the line, for the width of tabs
	if start > excerptWidth-excerptLead {
		skipped := start - excerptLead
		at = s.RuneOffset(s.RunesBefore(at) + skipped)
		start, end = start-skipped, end-skipped
		out.WriteString("…")
		column, indent = 1, 1
	}
	for i := 0; at < stop; i++ {
		r, size := utf8.DecodeRune(s.Bytes[at:stop])
		at += size
		shown, columns := string(printable(r)), runeWidth(printable(r))
		if r == '\t' {
			columns = tabWidth - column%tabWidth
			shown = strings.Repeat(" ", columns)
		}
		if column += columns; column > excerptWidth {
			out.WriteString("…")
			break
		}
		out.WriteString(shown)
		switch {
		case i < start:
			indent += columns
		case i < end:
			width += columns
		}
	}
	return out.String(), indent, width
}

// harmless replaces runes that are not printable.
func harmless(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, string(utf8.RuneError))
	}
	return strings.Map(printable, text)
}
