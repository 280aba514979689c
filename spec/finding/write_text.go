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
	excerptWidth = 160 // columns of a source line; of a longer one the part around the range is shown
	excerptLead  = 40  // columns before the range that are then kept
)

// palette holds the escape sequences of a terminal, or nothing.
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

// WriteText writes findings for people: place, severity, code and sentence, then
// the line of the source with the range underlined. sources holds the text of
// files by Finding.File; a finding in a file without one has no excerpt. color
// says whether to write escape sequences for a terminal; those that stand in
// the files are never passed on.
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

// place is "file:line:column", or the file alone.
func (f Finding) place() string {
	if f.Range.Line < 1 {
		return f.File
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Range.Line, f.Range.Column)
}

// sentence is the message, and the suggestion after it.
func (f Finding) sentence() string {
	if f.Suggestion == "" {
		return f.Message
	}
	return f.Message + "; " + f.Suggestion
}

// writeExcerpt writes the first line of the range, underlined. An empty range is
// a guess: the lines around it are shown and nothing is underlined.
func writeExcerpt(out *bufio.Writer, s *lines.Text, r Range, colors palette) {
	first, last := r.Line, r.Line
	empty := r.EndLine < r.Line || r.EndLine == r.Line && r.EndColumn <= r.Column
	if empty {
		first, last = max(r.Line-1, 1), r.Line+1
	}
	gutter := max(gutterMin, len(strconv.Itoa(last)))
	for line := first; line <= min(last, len(s.Lines)); line++ {
		if line == len(s.Lines) && line > r.Line && s.Lines[line-1] == len(s.Bytes) {
			break // after the last line break is no line
		}
		text, indent, width := excerpt(s, line, r)
		writeRow(out, fmt.Sprintf("%s%*d |%s", colors.dim, gutter, line, colors.reset), text)
		if !empty {
			writeRow(out, fmt.Sprintf("%s%*s |%s", colors.dim, gutter, "", colors.reset),
				strings.Repeat(" ", indent)+colors.green+strings.Repeat("^", max(width, 1))+colors.reset)
		}
	}
}

// writeRow leaves no white space at the end of a line.
func writeRow(out *bufio.Writer, gutter, text string) {
	if text = strings.TrimRight(text, " "); text != "" {
		gutter += " " + text
	}
	out.WriteString(gutter + "\n")
}

// excerpt makes a line fit for a terminal: tabs are spaces, wide runes are
// counted as such, and of a long line only a window is read and shown. It returns
// the columns before the range, and those of the range.
func excerpt(s *lines.Text, line int, r Range) (text string, indent, width int) {
	start, end := r.Column-1, math.MaxInt
	if r.EndLine == r.Line {
		end = r.EndColumn - 1
	}
	at, stop := s.Lines[line-1], s.EndOfLine(line)
	var out strings.Builder
	column := 0 // of the line: tabs depend on it
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

// harmless replaces what a terminal would obey.
func harmless(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, string(utf8.RuneError))
	}
	return strings.Map(printable, text)
}
