package process

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lineMax is the length of the longest line that is logged as one record, in bytes.
const lineMax = 8 << 10

// logOutput logs the output of a process, one record per line, until the output ends.
func (c *Child) logOutput(r io.Reader, stream string) {
	defer c.output.Done()
	logger := c.settings.Logger.With(
		"processor", c.settings.Processor, "instance", c.settings.Instance, "pid", c.PID(), "stream", stream)
	readLines(r, func(line string, cut bool) {
		var attrs []slog.Attr
		if cut {
			attrs = append(attrs, slog.Bool("cut", true)) // the line continues in the next record
		}
		logger.LogAttrs(context.Background(), slog.LevelInfo, line, attrs...)
		c.lines.Add(1)
	})
}

// readLines calls line for each line of r. A line longer than lineMax is passed in parts;
// cut is true for all parts but the last.
func readLines(r io.Reader, line func(text string, cut bool)) {
	buf := make([]byte, 0, lineMax)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		rest := buf
		for {
			head, tail, ok := bytes.Cut(rest, []byte("\n"))
			if !ok {
				break
			}
			line(sanitized(head), false)
			rest = tail
		}
		if len(rest) == cap(buf) {
			whole := wholeRunes(rest)
			line(sanitized(rest[:whole]), true)
			rest = rest[whole:]
		}
		if err != nil {
			if len(rest) > 0 {
				line(sanitized(rest), false)
			}
			return
		}
		buf = buf[:copy(buf, rest)]
	}
}

// wholeRunes returns how many bytes of text to take so that no rune is split.
func wholeRunes(text []byte) int {
	for i := 1; i < utf8.UTFMax; i++ {
		if tail := text[len(text)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return len(text) - i
			}
			break
		}
	}
	return len(text)
}

// sanitized returns the line with control characters replaced, so that a child cannot
// control the terminal on which its parent's log is displayed.
func sanitized(line []byte) string {
	text := strings.ToValidUTF8(string(bytes.TrimSuffix(line, []byte("\r"))), "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029') {
			return '\uFFFD'
		}
		return r
	}, text)
}
