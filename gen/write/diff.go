package write

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/topogen/topogen/gen/header"
)

// contextLines is how many equal lines stand around a change, as diff -u has it.
const contextLines = 3

// writeDiff prints a unified diff that patch and git apply understand. A nil
// side is a file that does not exist.
func writeDiff(w io.Writer, label string, before, after []byte) error {
	out := bufio.NewWriter(w)
	from, to := quoted("a/"+label), quoted("b/"+label)
	if before == nil {
		from = "/dev/null"
	}
	if after == nil {
		to = "/dev/null"
	}
	before, after = header.UnixLines(before), header.UnixLines(after)
	if bytes.IndexByte(before, 0) >= 0 {
		fmt.Fprintf(out, "Binary files %s and %s differ\n", from, to)
		return out.Flush()
	}
	fmt.Fprintf(out, "--- %s\n+++ %s\n", from, to)
	a, b := splitLines(before), splitLines(after)
	for _, h := range hunks(edits(matchLines(a, b), len(b))) {
		h.print(out, a, b)
	}
	return out.Flush()
}

// quoted writes a name as git does where a terminal would obey what is in it.
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

// edit replaces a[a0:a1] by b[b0:b1].
type edit struct{ a0, a1, b0, b1 int }

// edits turns pairs of equal lines into what lies between them.
func edits(pair []int, lenB int) []edit {
	var list []edit
	last := edit{}
	add := func(a1, b1 int) {
		if last.a1, last.b1 = a1, b1; last.a0 < a1 || last.b0 < b1 {
			list = append(list, last)
		}
		last = edit{a0: a1 + 1, b0: b1 + 1}
	}
	for i, j := range pair {
		if j >= 0 {
			add(i, j)
		}
	}
	add(len(pair), lenB)
	return list
}

// hunk is a run of edits that are near each other.
type hunk []edit

func hunks(list []edit) []hunk {
	var all []hunk
	for i, e := range list {
		if i > 0 && e.a0-list[i-1].a1 <= 2*contextLines {
			all[len(all)-1] = append(all[len(all)-1], e)
		} else {
			all = append(all, hunk{e})
		}
	}
	return all
}

func (h hunk) print(w *bufio.Writer, a, b [][]byte) {
	first, last := h[0], h[len(h)-1]
	before := min(contextLines, first.a0)
	after := min(contextLines, len(a)-last.a1)
	a0, a1 := first.a0-before, last.a1+after
	b0, b1 := first.b0-before, last.b1+after
	fmt.Fprintf(w, "@@ -%s +%s @@\n", span(a0, a1), span(b0, b1))
	at := a0
	for _, e := range h {
		printLines(w, ' ', a[at:e.a0])
		printLines(w, '-', a[e.a0:e.a1])
		printLines(w, '+', b[e.b0:e.b1])
		at = e.a1
	}
	printLines(w, ' ', a[at:a1])
}

// span is a line range in a hunk's head: 1-based, the count left out when it is
// one, and an empty range named by the line before it.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	default:
		return fmt.Sprintf("%d,%d", from+1, to-from)
	}
}

func printLines(w *bufio.Writer, mark byte, lines [][]byte) {
	for _, line := range lines {
		w.WriteByte(mark)
		w.Write(line)
		if !bytes.HasSuffix(line, []byte("\n")) {
			w.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
