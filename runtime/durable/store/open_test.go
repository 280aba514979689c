//go:build unix

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/store"
)

// TestFormats: files of bbolt from later versions and other programs are refused.
func TestFormats(t *testing.T) {
	for _, one := range []struct {
		kind    string
		version int
		want    error
		text    string
	}{
		{"", 0, store.ErrNotAStore, "not a store"},
		{"durable promises", 3, store.ErrFormat, "version 3"},
		{"address book", 1, store.ErrNotAStore, "address book"},
	} {
		dir := memdir.Quick(t)
		must(t, store.CreateOther(file(dir), one.kind, one.version))
		for _, trust := range []bool{false, true} {
			_, err := store.Open(dir, store.Options{TrustFile: trust})
			if !errors.Is(err, one.want) || !strings.Contains(err.Error(), one.text) || !strings.Contains(err.Error(), file(dir)) {
				t.Errorf("trust %v: %v", trust, err)
			}
		}
	}
}

// TestVersion1: a store of version 1 opens with its records, and is then of version 2.
func TestVersion1(t *testing.T) {
	dir, content, _ := filled(t)
	must(t, store.Version1(dir))
	for range 2 {
		report, err := store.Verify(dir)
		must(t, err)
		if len(report.Damage) > 0 {
			t.Error(report.Damage[0])
		}
		s := open(t, dir, store.Options{})
		if got := dump(t, s); !maps.Equal(got, content) {
			t.Errorf("the store has %d records, want %d", len(got), len(content))
		}
		put(t, s, "key", "value")
		content = dump(t, s)
		if !bytes.Contains(read(t, s.File().Name()), []byte(`"version":2`)) {
			t.Error("a commit did not change the version")
		}
		must(t, s.Close())
	}
}

// TestPlaces: Open creates a directory, but not its parents, and refuses a file.
func TestPlaces(t *testing.T) {
	dir := memdir.Quick(t)
	one := filepath.Join(dir, "one")
	s := open(t, one, store.Options{})
	id := s.ID()
	must(t, s.Close())
	s = open(t, one, store.Options{})
	if s.ID() != id || len(id) < 20 {
		t.Errorf("the identity was %q and is %q", id, s.ID())
	}
	must(t, s.Close())
	if s.Close() != store.ErrClosed {
		t.Error("a second Close must return ErrClosed")
	}
	if _, err := store.Open(filepath.Join(dir, "two", "three"), store.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := store.Open(file(one), store.Options{}); err == nil || !strings.Contains(err.Error(), "must be a directory") {
		t.Error(err)
	}
	if _, err := store.Verify(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestInterruptedCreation: a file that was being created does not hinder the next Open.
func TestInterruptedCreation(t *testing.T) {
	for _, content := range []string{"", "x", strings.Repeat("x", 10_000)} {
		dir := memdir.Quick(t)
		must(t, os.WriteFile(filepath.Join(dir, "promises.new"), []byte(content), 0o600))
		put(t, open(t, dir, store.Options{}), "key", "value")
		if _, err := os.Stat(filepath.Join(dir, "promises.new")); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}

// TestVerify reports the numbers of a store.
func TestVerify(t *testing.T) {
	dir := memdir.Quick(t)
	s := open(t, dir, store.Options{})
	fill(t, s)
	want := map[core.Table]uint64{}
	must(t, s.View(func(tx store.Tx) error {
		for r := range store.Records(tx) {
			want[r.Table]++
		}
		return nil
	}))
	if _, err := store.Verify(dir); !errors.Is(err, store.ErrInUse) {
		t.Error(err)
	}
	must(t, s.Close())
	report, err := store.Verify(dir)
	must(t, err)
	for table, n := range report.Records {
		if n != want[core.Table(table)] {
			t.Errorf("table %d has %d records, want %d", table, n, want[core.Table(table)])
		}
	}
	if report.ID != s.ID() || report.Pages < 10 || report.Free < 1 || report.Commits < 20 || report.Bytes < report.Pages*pageBytes {
		t.Errorf("%+v", report)
	}
	for p := range int(report.Pages) - 2 {
		write(t, dir, (p+2)*pageBytes, []byte("xxxxxxxxxxxxxxxx"))
	}
	report, err = store.Verify(dir)
	must(t, err)
	if len(report.Damage) == 0 {
		t.Error("the damage must be reported")
	}
}

// TestNoChangeNoSync: transactions that change nothing do not write.
func TestNoChangeNoSync(t *testing.T) {
	s := open(t, memdir.Quick(t), store.Options{})
	put(t, s, "key", "value")
	writes := 0
	s.HookWrites(func(f store.WriteAt) store.WriteAt {
		return func(b []byte, at int64) (int, error) { writes++; return f(b, at) }
	})
	must(t, s.Update(func(tx store.Tx) error {
		tx.Get(1, []byte("key"))
		tx.Delete(1, []byte("other"))
		if tx.Changed() {
			t.Error("nothing was changed")
		}
		return nil
	}))
	if writes != 0 {
		t.Errorf("%d writes", writes)
	}
	must(t, s.Update(func(tx store.Tx) error {
		tx.Delete(1, []byte("key"))
		if !tx.Changed() {
			t.Error("a record was deleted")
		}
		return nil
	}))
	if writes == 0 {
		t.Error("no writes: the hook does not work")
	}
}

// TestMaxBytes: a store that has reached its limit refuses transactions and works on.
func TestMaxBytes(t *testing.T) {
	dir := memdir.Quick(t)
	s := open(t, dir, store.Options{MaxBytes: 1 << 20})
	n := 0
	var err error
	for ; err == nil; n++ {
		err = s.Update(func(tx store.Tx) error {
			tx.Put(1, fmt.Appendf(nil, "key %06d", n), make([]byte, 1000))
			return nil
		})
	}
	if !errors.Is(err, store.ErrFull) || n < 300 {
		t.Fatal(n, err)
	}
	if got := len(dump(t, s)); got != n-1 {
		t.Errorf("%d records, want %d", got, n-1)
	}
	must(t, s.Close())
	s = open(t, dir, store.Options{})
	put(t, s, "key", "value")
	if got := len(dump(t, s)); got != n {
		t.Errorf("%d records, want %d", got, n)
	}
}
