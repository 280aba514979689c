package etcd

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
)

func TestKeys(t *testing.T) {
	k := keys{"/orders"}
	for _, n := range []uint64{0, 1, 255, 1 << 40} {
		if got, err := k.entryNumber(k.entry(n)); err != nil || got != n {
			t.Errorf("the number of entry %d is read as %d: %v", n, got, err)
		}
		h := head{n, 3}
		if got, err := readHead([]byte(h.encode())); err != nil || got != h {
			t.Errorf("the head %v is read as %v: %v", h, got, err)
		}
		if got, err := readLast([]byte(digits(n))); err != nil || got != n {
			t.Errorf("%d is read as %d: %v", n, got, err)
		}
	}
	for _, key := range []string{"", "/orders/log/1", "/orders/log/000000000000000G", "/orders/log/00000000000000AB", "/other/log/0000000000000001", "/orders/log/00000000000000001"} {
		if n, err := k.entryNumber(key); !errors.Is(err, errKey) {
			t.Errorf("the key %q is read as entry %d: %v", key, n, err)
		}
	}
	for _, text := range []string{"", "0000000000000001", "0000000000000001 0", "0000000000000001 -1", "1 1", "0000000000000001 1 ", "0000000000000001 100000", strings.Repeat("9", 1000)} {
		if h, err := readHead([]byte(text)); !errors.Is(err, errKey) {
			t.Errorf("%.20q is read as the head %v: %v", text, h, err)
		}
	}
	for _, text := range []string{"", "1", "-000000000000001", "ffffffffffffffff", "000000000000000A"} {
		if n, err := readLast([]byte(text)); !errors.Is(err, errKey) {
			t.Errorf("%q is read as %d: %v", text, n, err)
		}
	}
	// The order of the keys is the order of the numbers.
	if k.entry(9) >= k.entry(10) || k.entry(255) >= k.entry(1<<40) || k.entry(1) < k.log() {
		t.Error("the keys of entries are not in the order of their numbers")
	}
}

func FuzzEntry(f *testing.F) {
	e := entry{1, 2, []byte{3}}
	f.Add([]byte(e.encode()))
	f.Add([]byte(head{last: 7, parts: 2}.encode()))
	f.Add([]byte(digits(9)))
	f.Fuzz(func(t *testing.T, b []byte) {
		allocated.Within(t, 10*len(b), func() {
			if e, err := readEntry(b); err == nil && !bytes.Equal([]byte(e.encode()), b) {
				t.Errorf("%x is read as %+v", b, e)
			}
			if h, err := readHead(b); err == nil && h.encode() != string(b) {
				t.Errorf("%x is read as %+v", b, h)
			}
			if n, err := readLast(b); err == nil && digits(n) != string(b) {
				t.Errorf("%x is read as %d", b, n)
			}
		})
	})
}
