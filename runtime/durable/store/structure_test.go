//go:build unix

package store_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/durable/store"
)

// TestWrongStructure changes numbers in the pages to other plausible ones. bbolt would
// overwrite pages that are in use, or never end.
func TestWrongStructure(t *testing.T) {
	dir, _, pages := filled(t)
	u64 := func(at int) uint64 { return binary.NativeEndian.Uint64(pages[at:]) }
	newest := 0
	if u64(pageBytes+64) > u64(64) {
		newest = pageBytes
	}
	freelist := int(u64(newest+48)) * pageBytes
	free := int(binary.NativeEndian.Uint16(pages[freelist+10:]))
	branch := 0
	for p := 2 * pageBytes; p < len(pages) && branch == 0; p += pageBytes {
		if binary.NativeEndian.Uint16(pages[p+8:]) == 1 && binary.NativeEndian.Uint16(pages[p+10:]) > 1 && !freePage(pages, freelist, free, p/pageBytes) {
			branch = p
		}
	}
	if branch == 0 || free < 2 {
		t.Fatal("the store has no branch page or no free pages")
	}
	for name, one := range map[string]struct {
		at   int
		b    []byte
		text string
	}{
		"a used page is also free": {freelist + 10, u16bytes(free + 1), "in use or listed twice"}, // with the id below
		"a page is free twice":     {freelist + 16, u64bytes(u64(freelist + 24)), "in use or listed twice"},
		"a free page is missing":   {freelist + 10, u16bytes(free - 1), "neither in use nor free"},
		"a free page is too high":  {freelist + 16, u64bytes(1 << 40), "the list of free pages has page"},
		"a branch leads to itself": {branch + 16 + 8, u64bytes(uint64(branch / pageBytes)), "two references"},
		"two branches are one":     {branch + 16 + 8, u64bytes(u64(branch + 32 + 8)), ""},
		"a branch leads outside":   {branch + 16 + 8, u64bytes(1 << 50), "a reference leads to page"},
		"a branch is too long":     {branch + 12, []byte{0xFF, 0xFF, 0xFF, 0x7F}, "more than a page of a store"},
		"a branch passes the end":  {branch + 12, binary.NativeEndian.AppendUint32(nil, uint32(len(pages)/pageBytes)), "past the end"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, dir, 0, pages)
			if name == "a used page is also free" {
				write(t, dir, freelist+16+8*free, u64bytes(uint64(branch/pageBytes)))
			}
			write(t, dir, one.at, one.b)
			_, err := store.Open(dir, store.Options{})
			if damage, ok := errors.AsType[*store.DamageError](err); !ok || !strings.Contains(damage.Reason, one.text) {
				t.Error(err)
			}
		})
	}
}

// freePage reports whether a page is in the list of free pages.
func freePage(pages []byte, freelist, free, page int) bool {
	for i := range free {
		if binary.NativeEndian.Uint64(pages[freelist+16+8*i:]) == uint64(page) {
			return true
		}
	}
	return false
}

func u64bytes(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }

func u16bytes(v int) []byte { return binary.NativeEndian.AppendUint16(nil, uint16(v)) }
