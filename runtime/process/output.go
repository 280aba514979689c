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

// lineMax is the longest line that is logged in one piece, in bytes.
const lineMax = 8 << 10

// logOutput logs what a process prints, a record for each line, until it ends.
func (c *Child) logOutput(r io.Reader, stream string) {
	defer c.output.Done()
	logger := c.settings.Logger.With(
		"processor", c.settings.Processor, "instance", c.settings.Instance, "pid", c.PID(), "stream", stream)
	readLines(r, func(line string, cut bool) {
		var attrs []slog.Attr
		if cut {
			attrs = append(attrs, slog.Bool("cut", true)) // the line goes on in the next record
		}
		logger.LogAttrs(context.Background(), slog.LevelInfo, line, attrs...)
		c.lines.Add(1)
	})
}

// readLines calls line for each line of r. Longer ones than lineMax come in parts,
// all but the last of which are cut.
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

// wholeRunes is how many bytes of text to take so that no character is cut in two.
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

// sanitized is a line without what is not text: whoever prints a log on a terminal
// must not have it obey a child.
func sanitized(line []byte) string {
	text := strings.ToValidUTF8(string(bytes.TrimSuffix(line, []byte("\r"))), "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029') {
			return '\uFFFD'
		}
		return r
	}, text)
}
