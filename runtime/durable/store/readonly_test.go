//go:build unix

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/ordinary"
	"github.com/topogen/topogen/runtime/durable/store"
)

// folderState describes a directory: names, modes, times and contents.
func folderState(t testing.TB, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		m[path] = fmt.Sprintf("%v %v %d %x", info.Mode(), info.ModTime(), info.Size(), xxhash.Sum64(content))
		return nil
	}))
	return m
}

// killed returns a directory with a store that no process has closed, and its content.
func killed(t testing.TB) (dir string, content map[string]string) {
	t.Helper()
	from := memdir.Quick(t)
	s := open(t, from, store.Options{})
	fill(t, s)
	content = dump(t, s)
	dir = memdir.Quick(t)
	copyTo(t, file(from), file(dir))
	copyTo(t, filepath.Join(from, "lock"), filepath.Join(dir, "lock"))
	must(t, s.Close())
	return dir, content
}

func copyTo(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, b, 0o600))
}

// TestReadersChangeNothing: Verify and OpenReadOnly change no byte and no time of the directory
// of a store and of its files, and create none, whether the store was closed, was not closed,
// or is a copy without a lock.
func TestReadersChangeNothing(t *testing.T) {
	closed, content, _ := filled(t)
	open, contentOfOpen := killed(t)
	alone := memdir.Quick(t)
	copyTo(t, file(closed), file(alone))
	for dir, content := range map[string]map[string]string{closed: content, open: contentOfOpen, alone: content} {
		past := time.Now().Add(-time.Hour) // a change within the resolution of the clock would not be seen
		for path := range folderState(t, dir) {
			must(t, os.Chtimes(path, past, past))
		}
		before := folderState(t, dir)
		report, err := store.Verify(dir)
		must(t, err)
		if len(report.Damage) > 0 {
			t.Fatal(report.Damage[0])
		}
		if after := folderState(t, dir); !maps.Equal(before, after) {
			t.Error("Verify has changed the directory")
		}
		for _, trust := range []bool{false, true} {
			s, err := store.OpenReadOnly(dir, store.Options{TrustFile: trust})
			must(t, err)
			if !maps.Equal(dump(t, s), content) {
				t.Error("the content is not that of the store")
			}
			if err := s.Update(func(store.Tx) error { return nil }); !errors.Is(err, store.ErrReadOnly) {
				t.Error(err)
			}
			if err := s.View(func(tx store.Tx) error { tx.Put(1, []byte("k"), nil); return nil }); !errors.Is(err, store.ErrReadOnly) {
				t.Error(err)
			}
			must(t, s.Close())
			if err := s.Close(); !errors.Is(err, store.ErrClosed) {
				t.Error(err)
			}
			if err := s.View(func(store.Tx) error { return nil }); !errors.Is(err, store.ErrClosed) {
				t.Error(err)
			}
		}
		if after := folderState(t, dir); !maps.Equal(before, after) {
			t.Error("OpenReadOnly has changed the directory")
		}
	}
}

// TestReadersAndWriters: a store can have several readers, or one process that writes.
func TestReadersAndWriters(t *testing.T) {
	dir, _, _ := filled(t)
	a, err := store.OpenReadOnly(dir, store.Options{})
	must(t, err)
	b, err := store.OpenReadOnly(dir, store.Options{})
	must(t, err)
	if _, err := store.Open(dir, store.Options{}); !errors.Is(err, store.ErrInUse) {
		t.Errorf("opened while it is read: %v", err)
	}
	must(t, a.Close())
	must(t, b.Close())
	s := open(t, dir, store.Options{})
	for _, lock := range []bool{true, false} {
		if !lock { // a reader that may not read the lock notices the lock of bbolt
			must(t, os.Remove(filepath.Join(dir, "lock")))
		}
		if _, err := store.OpenReadOnly(dir, store.Options{}); !errors.Is(err, store.ErrInUse) {
			t.Errorf("lock %v: read while it is open: %v", lock, err)
		}
		if _, err := store.Verify(dir); !errors.Is(err, store.ErrInUse) {
			t.Errorf("lock %v: verified while it is open: %v", lock, err)
		}
	}
	must(t, s.Close())
}

// TestReadOnlyDamage: a damaged file and a file that is not a store are refused.
func TestReadOnlyDamage(t *testing.T) {
	dir, _, pages := filled(t)
	must(t, os.WriteFile(file(dir), bytes.ReplaceAll(pages, []byte("key 1"), []byte("key 7")), 0o600))
	if _, err := store.OpenReadOnly(dir, store.Options{}); !isDamage(err) {
		t.Error(err)
	}
	other := memdir.Quick(t)
	must(t, store.CreateOther(file(other), "", 0))
	for _, trust := range []bool{false, true} {
		if _, err := store.OpenReadOnly(other, store.Options{TrustFile: trust}); !errors.Is(err, store.ErrNotAStore) {
			t.Error(err)
		}
	}
	if _, err := store.OpenReadOnly(memdir.Quick(t), store.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func isDamage(err error) bool {
	_, ok := errors.AsType[*store.DamageError](err)
	return ok
}

// verifyAndOpen opens a store to read it.
func verifyAndOpen(dir string) error {
	_, err := store.Verify(dir)
	s, err2 := store.OpenReadOnly(dir, store.Options{})
	if err == nil && err2 == nil {
		err = s.Close()
	}
	return errors.Join(err, err2)
}

// TestUserWhoMayOnlyRead: a user who may not write to the directory and the files can read
// the store, and notices a process that has it open.
func TestUserWhoMayOnlyRead(t *testing.T) {
	dir := memdir.Quick(t)
	s := open(t, dir, store.Options{})
	fill(t, s)
	for path, mode := range map[string]fs.FileMode{dir: 0o555, file(dir): 0o444, filepath.Join(dir, "lock"): 0o444} {
		must(t, os.Chmod(path, mode))
	}
	t.Cleanup(func() { must(t, os.Chmod(dir, 0o755)) }) // so that the files can be removed
	read := func() (text string) {
		ordinary.Run(t, func() {
			if err := os.WriteFile(file(dir), nil, 0o600); !errors.Is(err, fs.ErrPermission) {
				t.Fatalf("the user can write: %v", err)
			}
			text = fmt.Sprint(verifyAndOpen(dir))
		})
		return text
	}
	if got := read(); !strings.Contains(got, fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Errorf("while the store is open: %s", got)
	}
	must(t, os.Chmod(filepath.Join(dir, "lock"), 0))
	if got := read(); !strings.Contains(got, "in use") {
		t.Errorf("while the store is open, without the right to read its lock: %s", got)
	}
	must(t, s.Close())
	if got := read(); got != "<nil>" {
		t.Errorf("after it was closed: %s", got)
	}
}
