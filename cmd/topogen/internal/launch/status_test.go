package launch

import (
	"strings"
	"testing"
	"time"
)

func TestStatus(t *testing.T) {
	start := time.Now()
	line := func(text string, after time.Duration) figures {
		f, ok := parseFigures(text, start.Add(after))
		if !ok {
			t.Fatalf("%q does not parse", text)
		}
		return f
	}
	edges := []string{"feed -> parser: Line", "parser -> totals: Item"}
	before := line("0 0 0 0 1000 10 0 500 0 0", 2*time.Second)
	now := line("0 0 0 0 13000 10 0 2500 5 7", 4*time.Second)
	for _, c := range []struct {
		name        string
		before, now figures
		want        string
	}{
		{"two readings", before, now, "words  4s  15.5k messages  7.00k/s  15 queued  7 dropped  feed -> parser: Line 6.00k/s"},
		{"the first reading", before, before, "words  2s  1.50k messages  10 queued"},
		{"nothing yet", figures{}, line("0 0 0 0 0 0 0 0 0 0", 0), "words  0s  0 messages"},
		{"more edges than are known", line("0 0 0 0 1 0 0 1 0 0 1 0 0", 0), line("0 0 0 0 1 0 0 1 0 0 9 0 0", time.Second), "words  1s  11 messages  8/s"},
		{"failures", before, line("12 3 2 1 2000 10 0 500 0 0", 3*time.Second), "words  3s  2.50k messages  1.00k/s  10 queued  12 restarts  3 broken inputs  2 recovered  1 given up  feed -> parser: Line 1.00k/s"},
	} {
		if got := status("words", edges, start, c.before, c.now); got != c.want {
			t.Errorf("%s: got  %q, want %q", c.name, got, c.want)
		}
	}
	if _, ok := parseFigures("1 2 x", start); ok {
		t.Error("parseFigures accepted a word")
	}
}

func TestShort(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 7: "7", 999: "999", 999.6: "1.00k", 1234: "1.23k", 45678: "45.7k", 99960: "100k", 1e6: "1.00M", 12.5e9: "12.5G", 5e15: "5000T"} {
		if got := short(n); got != want {
			t.Errorf("%v is %s, want %s", n, got, want)
		}
	}
}

// TestScreen: the output of the program is never mixed with the status line, and no status
// line remains at the end.
func TestScreen(t *testing.T) {
	var out strings.Builder
	s := &screen{out: &out}
	write := func(text string) {
		if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	s.set("1 message")
	write("hello\n")
	write("no line end")
	s.set("2 messages") // shown after the line has ended
	write(" yet\n")
	s.close()
	s.set("3 messages")
	write("late\n")
	const one, two = noWrap + "1 message" + wrap, noWrap + "2 messages" + wrap
	want := one + eraseLine + "hello\n" + one + eraseLine + "no line end" + " yet\n" + two + eraseLine + "late\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}
