package write

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/topogen/topogen/gen/header"
)

// writeDiff prints a unified diff for patch and git apply. nil means that the file does not
// exist.
func writeDiff(w io.Writer, label string, before, after []byte) error {
	from, to := quoted("a/"+label), quoted("b/"+label)
	if before == nil {
		from = "/dev/null"
	}
	if after == nil {
		to = "/dev/null"
	}
	before, after = header.UnixLines(before), header.UnixLines(after)
	if bytes.IndexByte(before, 0) >= 0 {
		_, err := fmt.Fprintf(w, "Binary files %s and %s differ\n", from, to)
		return err
	}
	_, text, _ := bytes.Cut(diff.Diff(from, before, to, after), []byte("\n")) // the first line is a command
	_, err := w.Write(text)
	return err
}

// quoted quotes a name like git if it contains control characters for a terminal.
func quoted(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return name
	}
	out := []byte{'"'}
	for _, c := range []byte(name) {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ' || c >= 0x7f:
			out = fmt.Appendf(out, `\%03o`, c)
		default:
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}
