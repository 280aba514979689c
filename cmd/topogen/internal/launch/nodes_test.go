package launch

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// TestPrefixed: the lines of two nodes are never mixed, and no line fills the memory.
func TestPrefixed(t *testing.T) {
	var out strings.Builder
	var mu sync.Mutex
	a := &prefixed{mu: &mu, out: &out, prefix: "a | "}
	b := &prefixed{mu: &mu, out: &out, prefix: "b | "}
	write := func(p *prefixed, text string) {
		if n, err := p.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	write(a, "one\ntw")
	write(b, "\nthree")
	write(a, "o\n")
	write(b, " four\nfive\nsix")
	a.close()
	b.close()
	if want := "a | one\nb | \na | two\nb | three four\nb | five\nb | six\n"; out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
	out.Reset()
	write(a, strings.Repeat("x", lineBytesMax-1))
	write(a, strings.Repeat("y", 2*lineBytesMax+2))
	if len(a.line) > lineBytesMax || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("a line of %d bytes is kept, and %d lines were written", len(a.line), strings.Count(out.String(), "\n"))
	}
	a.close()
	if n := strings.Count(out.String(), "x") + strings.Count(out.String(), "y"); n != 3*lineBytesMax+1 {
		t.Errorf("%d bytes were written, want %d", n, 3*lineBytesMax+1)
	}
}

func TestBoard(t *testing.T) {
	start := time.Now()
	b := newBoard("orders", []string{"n1", "berlin"}, start)
	b.report(0, "running 4 0 0 0 0 1000 10 0", start.Add(time.Second))
	for _, wrong := range []string{"", "running", "running x 0", "\x1b[2J 1 0 0 0 0", "running 1 0 0 0 0 z"} {
		if text := b.report(1, wrong, start); text != "" {
			t.Errorf("the line %q gives %q", wrong, text)
		}
	}
	got := b.report(0, "running 4 0 0 0 0 3000 10 2", start.Add(3*time.Second))
	want := `n1      running        4 instances    1.00k/s    3.00k messages  10 queued  2 dropped
berlin  starting       0 instances        0/s        0 messages
orders  1 of 2         4 instances    1.00k/s    3.00k messages  10 queued  2 dropped  3s`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got = b.ended(0, "killed", start.Add(4*time.Second))
	want = `n1      killed         0 instances        0/s    3.00k messages  10 queued  2 dropped
berlin  starting       0 instances        0/s        0 messages
orders  0 of 2         0 instances        0/s    3.00k messages  10 queued  2 dropped  4s`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestScreenWithSeveralLines: all lines of the status are erased.
func TestScreenWithSeveralLines(t *testing.T) {
	var out strings.Builder
	s := &screen{out: &out}
	s.set("a\nb\nc")
	s.set("d")
	s.close()
	if want := noWrap + "a\nb\nc" + wrap + eraseLine + eraseUp + eraseUp + noWrap + "d" + wrap + eraseLine; out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}
