package errtop

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// readByOthers reads a file with the complete protobuf library, which takes longer to
// compile than all other tests take to run; see protobuf_test.go. It is nil without the
// build tag protobuf.
var readByOthers func([]byte) ([]Entry, error)

func decodeBytes(b []byte) ([]Entry, error) { return decode(bytes.NewReader(b)) }

func TestDecode(t *testing.T) {
	whole := encode([]Entry{{"ab", 3, time.UnixMicro(5)}}) // 10 06 …, 8 bytes for each map
	for _, c := range []struct {
		name, file, want string
	}{
		{"nothing", "", ""},
		{"whole", string(whole), `"ab" 3 5`},
		{"maps in the other order", string(whole[8:]) + string(whole[:8]), `"ab" 3 5`},
		{"only a count", string(whole[:8]), `"ab" 3 -`},
		{"only a time", string(whole[8:]), `"ab" 0 5`},
		{"the last of several counts", "\x0a\x03\x0a\x01a" + "\x0a\x05\x0a\x01a\x10\x09" + "\x0a\x05\x0a\x01a\x10\x07", `"a" 7 -`},
		{"an unknown field", "\x1a\x02xy" + string(whole), `"ab" 3 5`},
		{"a known field with another type", "\x08\x01" + string(whole), `"ab" 3 5`},
		{"an entry without key", "\x0a\x02\x10\x09", `"" 9 -`},
		{"text", "panic: no such file", "byte 3: cannot parse reserved wire type"},
		{"cut in an entry", string(whole[:14]), "byte 9: unexpected EOF"},
		{"cut after a tag", string(whole[:9]), "byte 9: unexpected EOF"},
		{"a length beyond the file", "\x0a\xff\xff\xff\xff\x0f", "byte 1: unexpected EOF"},
		{"a length that overflows", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "byte 1: variable length integer overflow"},
		{"field 0", string(whole) + "\x02\x00", "byte 16: invalid field number"},
		{"a field number that is too large", string(whole) + "\x82\x80\x80\x80\x10\x00", "byte 16: invalid field number"},
		{"an entry that is truncated", "\x0a\x04\x0a\x01a\x10", "byte 6: unexpected EOF"},
		{"the largest", string(encode([]Entry{{strings.Repeat("a", textMax), math.MaxUint64, time.UnixMicro(-1)}})), `"` + strings.Repeat("a", textMax) + `" 18446744073709551615 -1`},
		{"a text too long", string(whole) + string(encode([]Entry{{strings.Repeat("a", textMax+1), 1, time.UnixMicro(5)}})), "byte 20: a text of more than 8192 bytes"},
		{"a field too long", string(whole) + string(encode([]Entry{{strings.Repeat("a", fieldMax), 1, time.UnixMicro(5)}})), "byte 16: a field of more than 8224 bytes"},
		{"an unknown field too long", "\x1a\xff\xff\x03" + strings.Repeat("a", 1<<16-1), "byte 0: a field of more than 8224 bytes"},
		{"an unknown group too long", "\x1b" + strings.Repeat("\x08\x01", fieldMax) + "\x1c", "byte 0: a field of more than 8224 bytes"},
		{"not UTF-8", "\x0a\x05\x0a\x01\xff\x10\x01", "byte 3: a text that is not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries, err := decodeBytes([]byte(c.file))
			got := ""
			for _, e := range entries {
				last := "-"
				if !e.Last.IsZero() {
					last = fmt.Sprint(e.Last.UnixMicro())
				}
				got += fmt.Sprintf("%q %d %s", e.Text, e.Count, last)
			}
			if err != nil {
				got = strings.TrimPrefix(err.Error(), ErrFormat.Error()+": ")
				if !errors.Is(err, ErrFormat) {
					t.Errorf("%v is not ErrFormat", err)
				}
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if readByOthers != nil {
				if _, other := readByOthers([]byte(c.file)); (other == nil) != (err == nil) && !strings.Contains(c.want, "more than") {
					t.Errorf("the protobuf library returned %v", other)
				}
			}
		})
	}
}

func TestDecodeIsBounded(t *testing.T) {
	var b []byte
	for i := range recordsMax + 1 {
		key := fmt.Sprintf("%05d", i)
		b = protowire.AppendTag(b, fieldCount, protowire.BytesType)
		b = protowire.AppendBytes(b, append([]byte{0x0a, 5}, key...))
	}
	if _, err := decodeBytes(b); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "more than 4096 records") {
		t.Errorf("%v", err)
	}
	if entries, err := decodeBytes(b[:len(b)-9]); err != nil || len(entries) != recordsMax {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}
