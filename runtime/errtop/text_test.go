package errtop

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

func TestPlain(t *testing.T) {
	short := "0x" + strings.Repeat("1", digitsMin-1)
	for in, want := range map[string]string{
		"":                              "",
		"no such file":                  "no such file",
		"at 0xc000012345":               "at 0x…",
		"at 0xC000012345, 0xc000012346": "at 0x…, 0x…",
		"opcode 0x1f":                   "opcode 0x1f",
		short:                           short,
		"0x0x12345678":                  "0x0x…",
		"goroutine 17 [running]":        "goroutine … [running]",
		"goroutine x":                   "goroutine x",
		"a\xffb":                        "a\uFFFDb",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestPlainIsPlainAlready(t *testing.T) {
	speed.Checks(t, 100, 100, 10_000)
	pieces := rapid.SliceOf(rapid.SampledFrom([]string{"0x", "0", "1234567", "f", "goroutine ", "…", "\xe2", "\x80", "é", " "}))
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(pieces.Draw(t, "pieces"), "")
		once := plain(s)
		if twice := plain(once); twice != once || !utf8.ValidString(once) {
			t.Errorf("%q, %q, %q", s, once, twice)
		}
		for most := len(cutMark); most < len(once)+2; most++ {
			short := cut(once, most)
			if len(short) > most || !utf8.ValidString(short) || len(once) <= most && short != once {
				t.Errorf("cut(%q, %d) = %q", once, most, short)
			}
		}
	})
}

func TestTextsAreBounded(t *testing.T) {
	text := textOf(strings.Repeat("w", 1<<20), strings.Repeat("goroutine 1 é\xff", 1<<20), strings.Repeat("\nf\n\tp", 1<<20))
	if len(text) > textMax || !utf8.ValidString(text) || !strings.HasSuffix(text, cutMark) {
		t.Errorf("got %d bytes, which end with %q", len(text), text[len(text)-10:])
	}
}
