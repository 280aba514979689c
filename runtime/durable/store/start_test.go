//go:build unix

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/topogen/topogen/internal/test/disksim"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/store"
)

// TestSuspectedStore: after a sync has failed, a store is refused as long as the system may have
// pages in memory that the disk has not. The message of a second process still names the first.
func TestSuspectedStore(t *testing.T) {
	// An error of a write that is not for lack of space, and lack of space that a sync reports.
	for _, failure := range []error{syscall.EIO, &fs.PathError{Op: "write", Err: syscall.EIO}, &fs.PathError{Op: "sync", Err: syscall.ENOSPC}} {
		t.Run(failure.Error(), func(t *testing.T) { suspectedStore(t, failure) })
	}
}

func suspectedStore(t *testing.T, failure error) {
	dir := t.TempDir()
	s := open(t, dir, store.Options{})
	put(t, s, "key", "old")
	s.HookWrites(func(store.WriteAt) store.WriteAt {
		return func([]byte, int64) (int, error) { return 0, failure }
	})
	if err := s.Update(func(tx store.Tx) error { tx.Put(1, []byte("key"), []byte("new")); return nil }); !errors.Is(err, store.ErrFailed) {
		t.Fatal(err)
	}
	_ = s.Close() // it has failed
	dropped := false
	defer store.HookDrop(func(*os.File) bool { return dropped })()
	for range 2 {
		_, err := store.Open(dir, store.Options{})
		if err == nil || !strings.Contains(err.Error(), "a sync of "+file(dir)+" has failed") || !strings.Contains(err.Error(), "remove "+filepath.Join(dir, "lock")) {
			t.Fatalf("got %v", err)
		}
	}
	dropped = true
	s = open(t, dir, store.Options{})
	if got := get(t, s, "key"); got != "old" {
		t.Errorf("got %q", got)
	}
	if _, err := store.Open(dir, store.Options{}); !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("by process %d ", os.Getpid())) {
		t.Errorf("got %v", err)
	}
	must(t, s.Close())
	dropped = false // as in a file system in memory, which is no reason to refuse a store whose syncs succeed
	must(t, open(t, dir, store.Options{}).Close())
}

// TestRestoreOfSuspectedStore: a restored store is a new file, so the note of a failed sync does
// not concern it.
func TestRestoreOfSuspectedStore(t *testing.T) {
	from, content, _ := filled(t)
	dir := t.TempDir()
	must(t, open(t, dir, store.Options{}).Close())
	must(t, os.WriteFile(filepath.Join(dir, "lock"), []byte("A sync of the store has failed. process 1"), 0o600))
	defer store.HookDrop(func(*os.File) bool { return false })()
	if _, err := store.Open(dir, store.Options{}); err == nil || !strings.Contains(err.Error(), "a sync of") {
		t.Fatalf("got %v", err)
	}
	if _, _, err := store.Restore(file(from), dir, true); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, store.Options{})
	if got := dump(t, s); !maps.Equal(got, content) {
		t.Errorf("the store has %d records, want %d", len(got), len(content))
	}
	must(t, s.Close())
}

// TestStartOfStore: Open syncs the file, makes the system forget it, and then reads it. A sync
// that fails marks the store. A start that succeeds removes the mark.
func TestStartOfStore(t *testing.T) {
	dir := t.TempDir()
	put(t, open(t, dir, store.Options{}), "key", "value")
	b, err := os.ReadFile(file(dir)) // the store is open, as after a kill
	must(t, err)
	dir = t.TempDir()
	must(t, os.WriteFile(file(dir), b, 0o600))
	var steps []string
	var failure error
	step := func(name string) {
		if len(steps) == 0 || steps[len(steps)-1] != name {
			steps = append(steps, name)
		}
	}
	dropped := false
	defer store.HookOpenSync(func(*os.File) error { step("sync"); return failure })()
	defer store.HookDrop(func(*os.File) bool { step("drop"); return dropped })()
	defer store.HookReads(func(r io.ReaderAt) io.ReaderAt { step("read"); return r })()
	failure = syscall.EIO
	if _, err := store.Open(dir, store.Options{}); !errors.Is(err, syscall.EIO) || !slices.Equal(steps, []string{"sync"}) {
		t.Fatalf("%v, %v", steps, err)
	}
	failure = nil
	for _, f := range []func() error{
		func() error { _, err := store.Open(dir, store.Options{}); return err },
		func() error { _, err := store.Verify(dir); return err },
		func() error { _, err := store.OpenReadOnly(dir, store.Options{}); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "a sync of") {
			t.Errorf("a sync has failed, and the store is not refused: %v", err)
		}
	}
	dropped, steps = true, nil
	s := open(t, dir, store.Options{})
	if want := []string{"sync", "drop", "read"}; !slices.Equal(steps, want) {
		t.Errorf("got %v, want %v", steps, want)
	}
	must(t, s.Close())
	dropped = false
	steps = nil
	must(t, open(t, dir, store.Options{TrustFile: true}).Close())
}

// TestCloseFails: an error while the last commit is made is an error of Close, and marks the store.
func TestCloseFails(t *testing.T) {
	for _, failure := range []error{syscall.EIO, &fs.PathError{Op: "write", Err: syscall.ENOSPC}} {
		dir := t.TempDir()
		s := open(t, dir, store.Options{})
		put(t, s, "key", "value")
		s.HookWrites(func(f store.WriteAt) store.WriteAt {
			return func(b []byte, at int64) (int, error) {
				if at >= 2*pageBytes {
					return f(b, at)
				}
				_, _ = f(b[:60], at) // a part of the meta page
				return 60, failure
			}
		})
		if err := s.Close(); !errors.Is(err, failure) {
			t.Errorf("got %v", err)
		}
		restore := store.HookDrop(func(*os.File) bool { return false })
		if _, err := store.Open(dir, store.Options{}); err == nil || !strings.Contains(err.Error(), "a sync of") {
			t.Errorf("got %v", err)
		}
		restore()
	}
}

// TestReadErrors: an error of any read while the store is opened is an error, and not damage.
func TestReadErrors(t *testing.T) {
	dir, content, _ := filled(t)
	for at := 0; ; at++ {
		reads := &failingReads{at: at}
		restore := store.HookReads(func(r io.ReaderAt) io.ReaderAt { reads.ReaderAt = r; return reads })
		s, err := store.Open(dir, store.Options{})
		restore()
		if err == nil {
			if got := dump(t, s); at < 10 || !maps.Equal(got, content) {
				t.Errorf("after %d reads the store has %d records", at, len(got))
			}
			must(t, s.Close())
			return
		}
		if _, damaged := errors.AsType[*store.DamageError](err); damaged || !errors.Is(err, syscall.EIO) {
			t.Fatalf("read %d: %v", at, err)
		}
	}
}

// TestOldRootPage: the tables of another commit are refused, also in a store that was closed, and
// also if its file is not checked.
func TestOldRootPage(t *testing.T) {
	s := open(t, memdir.Quick(t), store.Options{})
	disk := memdir.Quick(t)
	fill(t, s)
	refused, commits := 0, speed.Pick(t, 4, 20, 20)
	for i := range commits {
		before := read(t, s.File().Name())
		var root int64
		s.HookWrites(func(f store.WriteAt) store.WriteAt {
			return func(b []byte, at int64) (int, error) {
				if at >= 2*pageBytes {
					root = at
				}
				return f(b, at)
			}
		})
		must(t, s.Update(func(tx store.Tx) error { tx.Put(5, []byte("small"), fmt.Append(nil, i)); return nil }))
		after, closed := read(t, s.File().Name()), memdir.Quick(t)
		must(t, os.WriteFile(file(closed), after, 0o600))
		must(t, open(t, closed, store.Options{}).Close())
		ended := read(t, file(closed))
		for _, b := range [][]byte{after, ended} {
			if int(root)+pageBytes > len(before) {
				continue
			}
			b = bytes.Clone(b)
			copy(b[root:], before[root:root+pageBytes])
			for _, trust := range []bool{false, true} {
				must(t, os.WriteFile(file(disk), b, 0o600))
				s, err := store.Open(disk, store.Options{TrustFile: trust})
				if err == nil {
					t.Errorf("commit %d, trust %v: opened", i, trust)
					must(t, s.Close())
				}
				if _, ok := errors.AsType[*store.DamageError](err); ok {
					refused++
				}
			}
		}
	}
	if refused < commits/2 {
		t.Errorf("%d stores were refused as damaged", refused)
	}
}

// TestCreationIsInterrupted: the power fails while a store is created. The next process
// creates it, or has it.
func TestCreationIsInterrupted(t *testing.T) {
	base := memdir.Quick(t)
	dir, after := filepath.Join(base, "dir"), filepath.Join(base, "after")
	must(t, os.Mkdir(dir, 0o700))
	rng := rand.New(rand.NewPCG(1, 31))
	disk := disksim.New(dir, rng)
	s := open(t, dir, store.Options{})
	must(t, os.Rename(file(dir), filepath.Join(dir, "promises.new"))) // as before it is complete
	disk.Observe()
	check := func() {
		t.Helper()
		for range 30 {
			disk.Crash(after, disksim.AnyLoss(rng))
			s := open(t, after, store.Options{})
			put(t, s, "key", "value")
			must(t, s.Close())
		}
	}
	check()
	disk.Sync("promises.new")
	must(t, os.Rename(filepath.Join(dir, "promises.new"), file(dir)))
	disk.Observe()
	check()
	disk.SyncDir()
	check()
	must(t, s.Close())
}
