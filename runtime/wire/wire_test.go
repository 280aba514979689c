package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestEnd: End inserts lengths of all sizes before the message.
func TestEnd(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 129, 16383, 16384, 2097151, 2097152} {
		message := bytes.Repeat([]byte{'m'}, n)
		b := append([]byte("before"), Begin)
		b = End(append(b, message...), len(b))
		if want := protowire.AppendBytes([]byte("before"), message); !bytes.Equal(b, want) {
			t.Errorf("%d bytes: %.20x, want %.20x", n, b, want)
		}
	}
	b := []byte("before\x0a\x00")
	if got := EndOrDrop(b, len(b), 2); string(got) != "before" {
		t.Errorf("after an empty message: %q", got)
	}
	if got := EndOrDrop(append(b, 'm'), len(b), 2); string(got) != "before\x0a\x01m" {
		t.Errorf("after another message: %q", got)
	}
}

func TestDuration(t *testing.T) {
	for _, d := range []time.Duration{0, 1, -1, time.Second, -time.Second - 1, math.MaxInt64, math.MinInt64} {
		r := Read(AppendBytes(nil, AppendDuration(nil, d)))
		var got time.Duration
		if Duration(&r, &got); r.err != nil || got != d {
			t.Errorf("%d became %d, %v", d, got, r.err)
		}
	}
	for name, b := range map[string][]byte{
		"more than there is":  appendPair(nil, math.MaxInt64/1000000000+1, 0),
		"less than there is":  appendPair(nil, math.MinInt64, 0),
		"two signs":           appendPair(nil, 1, -1),
		"too many nanosecond": appendPair(nil, 0, 1e9),
	} {
		r := Read(AppendBytes(nil, b))
		var got time.Duration
		if Duration(&r, &got); !errors.Is(r.err, ErrRange) && !errors.Is(r.End("", ""), ErrRange) {
			t.Errorf("%s: %v, %v", name, got, r.err)
		}
	}
}

// TestNumbers: a number that does not fit its type is an error, and other numbers are
// not.
func TestNumbers(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64().Draw(t, "v")
		small, large := Read(AppendInt(nil, v)), Read(AppendInt(nil, v))
		var s int8
		var l int64
		Int(&small, &s)
		Int(&large, &l)
		if l != v || large.err != nil || (small.err == nil) != (v == int64(int8(v))) {
			t.Fatalf("%d became %d and %d (%v, %v)", v, l, s, large.err, small.err)
		}
		u := rapid.Uint64().Draw(t, "u")
		r := Read(AppendUint(nil, u))
		var w uint16
		if Uint(&r, &w); (r.err == nil) != (u == uint64(uint16(u))) {
			t.Fatalf("%d became %d (%v)", u, w, r.err)
		}
	})
}

// TestRun: run counts elements that follow each other, and no elements beyond the
// input.
func TestRun(t *testing.T) {
	element := []byte("\x0a\x01e")
	for _, c := range []struct {
		rest string
		want int
	}{
		{"", 0}, {"\x0a\x01e", 1}, {"\x0a\x01e\x0a\x00", 2}, {"\x0a\x01e\x12\x00\x0a\x00", 1}, {"\x0a\x7f", 0}, {"\x0a", 0}, {"\x8a", 0},
	} {
		r := Read(append(element, c.rest...))
		r.Next()
		r.Message()
		if got := r.run(); got != c.want {
			t.Errorf("%q: %d, want %d", c.rest, got, c.want)
		}
	}
}

// TestFirstErrorCounts: the first error is kept, and nothing is read after it.
func TestFirstErrorCounts(t *testing.T) {
	r := Read([]byte("\x0a\x05a"))
	r.Next()
	r.Message()
	r.Within(errors.New("later"))
	if r.Next() || r.Left() || !errors.Is(r.End("M", "1 F"), ErrTruncated) {
		t.Errorf("%v", r.End("M", "1 F"))
	}
	var e *Error
	if err := fmt.Errorf("outside: %w", r.End("M", "1 F")); !errors.As(err, &e) || e.Path != "M.F" || e.Offset != 2 {
		t.Errorf("%+v", e)
	}
	if got := Failed("M", "F", Failed("N", "G", ErrDeep)).Error(); got != "wire: M.F.G: it is nested more than 1000 deep" {
		t.Error(got)
	}
}

// TestPathsEnd: the path of an error in a list that contains itself is cut.
func TestPathsEnd(t *testing.T) {
	err := error(ErrDeep)
	for range DepthMax {
		err = Failed("Node", "Nächstes", err)
	}
	if got := err.Error(); len(got) > 300 || !strings.HasPrefix(got, "wire: Node.Nächstes.Nächstes.") || !utf8.ValidString(got) || !strings.HasSuffix(got, "…: it is nested more than 1000 deep") {
		t.Error(got)
	}
}
