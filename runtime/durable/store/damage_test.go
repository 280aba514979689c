//go:build unix

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/store"
)

const pageBytes = 4096

// fill writes records of many kinds: several tables, values of many pages, a table that
// fits into the page of another, deleted records.
func fill(t testing.TB, s store.Store) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		must(t, s.Update(func(tx store.Tx) error {
			for i := range 60 {
				key := fmt.Appendf(nil, "key %d", rng.IntN(500))
				tx.Put(core.Table(1+i%3), key, bytes.Repeat([]byte{byte(i)}, rng.IntN(300)))
			}
			tx.Put(4, []byte("large"), bytes.Repeat([]byte{byte(round)}, 30_000))
			tx.Put(5, []byte("small"), fmt.Append(nil, round))
			for i := range 20 {
				tx.Delete(1, fmt.Appendf(nil, "key %d", 10*round+i))
			}
			return nil
		}))
	}
}

// filled returns a directory with a closed store, its content, and the pages of its file.
func filled(t testing.TB) (dir string, content map[string]string, pages []byte) {
	t.Helper()
	dir = memdir.New(t)
	s := open(t, dir, store.Options{})
	fill(t, s)
	content = dump(t, s)
	must(t, s.Close())
	report, err := store.Verify(dir)
	must(t, err)
	if len(report.Damage) > 0 {
		t.Fatal(report.Damage[0])
	}
	must(t, os.Truncate(file(dir), report.Pages*pageBytes))
	pages, err = os.ReadFile(file(dir))
	must(t, err)
	return dir, content, pages
}

func file(dir string) string { return filepath.Join(dir, "promises.db") }

// damaged opens a copy of a store after a change of its file. The store must be refused, or
// have its content.
func damaged(t *testing.T, dir string, content map[string]string, what string) (refused bool) {
	t.Helper()
	b, err := os.ReadFile(file(dir))
	must(t, err)
	second := memdir.New(t)
	defer func() { must(t, os.RemoveAll(second)) }()
	must(t, os.WriteFile(file(second), b, 0o600))
	s, err := store.Open(second, store.Options{})
	if err != nil {
		_, isDamage := errors.AsType[*store.DamageError](err)
		if !isDamage && !errors.Is(err, store.ErrNotAStore) && !errors.Is(err, store.ErrFormat) {
			t.Fatalf("%s: %v", what, err)
		}
		return true
	}
	defer func() { must(t, s.Close()) }()
	if got := dump(t, s); !maps.Equal(got, content) {
		t.Fatalf("%s: the store was opened with %d records instead of %d, or with others", what, len(got), len(content))
	}
	return false
}

// write changes the file in place.
func write(t *testing.T, dir string, at int, b []byte) {
	t.Helper()
	f, err := os.OpenFile(file(dir), os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt(b, int64(at))
	must(t, err)
	must(t, f.Close())
}

// read returns the pages of a file without the space that bbolt has reserved after them: 16 MiB
// of zeros.
func read(t *testing.T, path string) (b []byte) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer func() { must(t, f.Close()) }()
	for used := true; used; {
		const part = 64 * pageBytes
		b = append(b, make([]byte, part)...)
		n, err := f.ReadAt(b[len(b)-part:], int64(len(b)-part))
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		b = b[:len(b)-part+n]
		used = n == part && len(bytes.TrimRight(b[len(b)-part:], "\x00")) > 0
	}
	n := len(bytes.TrimRight(b, "\x00"))
	return b[:min(len(b), (n/pageBytes+2)*pageBytes)]
}

// TestFlippedBits flips bits in all pages of a store, one at a time.
func TestFlippedBits(t *testing.T) {
	speed.NoRace(t)
	dir, content, pages := filled(t)
	rng := rand.New(rand.NewPCG(3, 4))
	var places []int
	for p := 0; p < len(pages); p += pageBytes {
		for i := range 48 { // the head, and the first elements or the fields of a meta page
			if i%3 == rng.IntN(3) || p < 2*pageBytes {
				places = append(places, p+i)
			}
		}
		for range 10 {
			places = append(places, p+rng.IntN(pageBytes))
		}
	}
	rng.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	places = places[:speed.Pick(t, 80, len(places), len(places))]
	refused := 0
	for _, at := range places {
		write(t, dir, at, []byte{pages[at] ^ 1<<rng.IntN(8)})
		if damaged(t, dir, content, fmt.Sprintf("byte %d of page %d", at%pageBytes, at/pageBytes)) {
			refused++
		}
		write(t, dir, at, pages[at:at+1])
	}
	t.Logf("%d of %d flips in %d pages were refused", refused, len(places), len(pages)/pageBytes)
	if refused < len(places)/3 {
		t.Error("too few flips were noticed")
	}
}

// TestWrongPages replaces pages by zeros, by other pages, and by the first half of
// themselves.
func TestWrongPages(t *testing.T) {
	speed.NoRace(t)
	dir, content, pages := filled(t)
	for p := 0; p < len(pages); p += speed.Pick(t, 7, 1, 1) * pageBytes {
		page := pages[p : p+pageBytes]
		other := pages[(p+5*pageBytes)%len(pages):][:pageBytes]
		renumbered := append(bytes.Clone(page[:8]), other[8:]...)
		torn := append(bytes.Clone(page[:pageBytes/2]), make([]byte, pageBytes/2)...)
		for what, b := range map[string][]byte{"zeros": make([]byte, pageBytes), "another page": other, "another page with its number": renumbered, "a torn page": torn} {
			write(t, dir, p, b)
			damaged(t, dir, content, fmt.Sprintf("page %d is %s", p/pageBytes, what))
			write(t, dir, p, page)
		}
	}
	if damaged(t, dir, content, "restored") {
		t.Error("the file was restored and must open")
	}
}

// TestOldPages replaces each page by its version of an earlier commit, as a disk does that
// lost a write. All records in the page are intact.
func TestOldPages(t *testing.T) {
	dir := memdir.New(t)
	s := open(t, dir, store.Options{})
	fill(t, s)
	before := read(t, file(dir))
	for i := range 200 {
		put(t, s, fmt.Sprint("key ", i%3*i%100), fmt.Sprint("version ", i))
	}
	content := dump(t, s)
	must(t, s.Close())
	report, err := store.Verify(dir)
	must(t, err)
	must(t, os.Truncate(file(dir), report.Pages*pageBytes))
	after := read(t, file(dir))
	replaced, refused := 0, 0
	for p := 0; p < min(len(before), len(after)); p += pageBytes {
		if old := before[p : p+pageBytes]; !bytes.Equal(old, after[p:p+pageBytes]) {
			replaced++
			write(t, dir, p, old)
			if damaged(t, dir, content, fmt.Sprintf("page %d is an old version", p/pageBytes)) {
				refused++
			}
			write(t, dir, p, after[p:p+pageBytes])
		}
	}
	t.Logf("%d pages were replaced, %d refused", replaced, refused)
	if replaced < 10 || refused < 3 {
		t.Error("the test does not test much")
	}
}

// TestShortFile cuts the file.
func TestShortFile(t *testing.T) {
	dir, content, pages := filled(t)
	for _, n := range []int{0, 1, 15, 79, 80, pageBytes - 1, pageBytes, pageBytes + 100, 2 * pageBytes, len(pages) - pageBytes, len(pages) - 1} {
		must(t, os.WriteFile(file(dir), pages[:n], 0o600))
		if !damaged(t, dir, content, fmt.Sprint(n, " bytes")) {
			t.Errorf("a file with %d of %d bytes was opened", n, len(pages))
		}
		if _, err := store.Verify(dir); err != nil && !errors.Is(err, store.ErrNotAStore) {
			t.Error(err)
		}
	}
	must(t, os.WriteFile(file(dir), pages, 0o600))
	if damaged(t, dir, content, "whole") {
		t.Error("the whole file was refused")
	}
}

// TestDamageAfterKill damages each page of a store whose process was killed. The store is
// refused also if the page is of the last commit, because that was answered. TrustFile makes no
// difference, because the store was not closed.
func TestDamageAfterKill(t *testing.T) {
	dir := memdir.New(t)
	s := open(t, dir, store.Options{})
	fill(t, s)
	before := read(t, file(dir))
	put(t, s, "key", "last")
	want, after := dump(t, s), read(t, file(dir))
	dir = memdir.New(t)
	refused, refusedNew := 0, 0
	for p := 0; p < len(after); p += pageBytes {
		b := bytes.Clone(after)
		b[p+33] ^= 0x40
		must(t, os.WriteFile(file(dir), b, 0o600))
		s, err := store.Open(dir, store.Options{TrustFile: p/pageBytes%2 == 0})
		if err == nil {
			if got := dump(t, s); !maps.Equal(got, want) {
				t.Errorf("page %d: the state is not that of the last commit", p/pageBytes)
			}
			must(t, s.Close())
			continue
		}
		if _, ok := errors.AsType[*store.DamageError](err); !ok {
			t.Error(err)
		}
		if refused++; p >= len(before) || !bytes.Equal(before[p:p+pageBytes], after[p:p+pageBytes]) {
			refusedNew++
		}
	}
	if refused < 10 || refusedNew < 3 {
		t.Errorf("%d pages were refused, %d of them of the last commit", refused, refusedNew)
	}
}

// TestOtherFiles: files that are not stores are refused with their path and are not
// changed.
func TestOtherFiles(t *testing.T) {
	dir, _, pages := filled(t)
	for what, one := range map[string]struct {
		content []byte
		want    error
		text    string
	}{
		"empty":      {nil, store.ErrNotAStore, "too short"},
		"text":       {[]byte(strings.Repeat("This is a letter.\n", 1000)), store.ErrNotAStore, "does not begin"},
		"zeros":      {make([]byte, 100_000), store.ErrNotAStore, "does not begin"},
		"later bolt": {append(bytes.Replace(pages[:pageBytes], []byte{0xED, 0xDA, 0x0C, 0xED, 2}, []byte{0xED, 0xDA, 0x0C, 0xED, 3}, 1), pages[pageBytes:]...), store.ErrFormat, "version 3 of bbolt"},
	} {
		must(t, os.WriteFile(file(dir), one.content, 0o600))
		_, err := store.Open(dir, store.Options{})
		if !errors.Is(err, one.want) || !strings.Contains(err.Error(), file(dir)) || !strings.Contains(err.Error(), one.text) {
			t.Errorf("%s: %v", what, err)
		}
		if got, err := os.ReadFile(file(dir)); err != nil || !bytes.Equal(got, one.content) {
			t.Errorf("%s: the file was changed: %v", what, err)
		}
	}
	must(t, os.Remove(file(dir)))
	must(t, syscall.Mkfifo(file(dir), 0o600))
	if _, err := store.Open(dir, store.Options{}); err == nil || !strings.Contains(err.Error(), "named pipe") {
		t.Error(err)
	}
}
