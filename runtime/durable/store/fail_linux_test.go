package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/failsync"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/durable/store"
)

// mount mounts a file system in memory. It skips the test if the process is not allowed to.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("needs permission to mount: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// TestFullDisk: a full disk refuses updates. All earlier ones are kept, views work, and
// updates work again as soon as the disk has space.
func TestFullDisk(t *testing.T) {
	dir := mount(t, "size=512k")
	s := open(t, dir, store.Options{})
	h := &history{store: store.NewMemory()}
	n := 0
	next := func() error {
		return s.Update(func(tx store.Tx) error { change(tx, n+1); return nil })
	}
	for round := range 5 {
		var err error
		for err = next(); err == nil; err = next() {
			n++
		}
		if !errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrFailed) || !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		for range 3 { // the pages that the earlier commits freed may suffice
			if err := next(); err == nil {
				n++
			} else if !errors.Is(err, store.ErrFull) {
				t.Fatal(err)
			}
		}
		if !maps.Equal(dump(t, s), h.at(t, n)) {
			t.Fatalf("round %d: the store must have the state of transaction %d", round, n)
		}
		must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%dk", 512+(round+1)*200)))
		must(t, next())
		n++
	}
	if n < 20 {
		t.Errorf("only %d transactions", n)
	}
	must(t, s.Close())
	survived(t, dir, n, h, "after the full disk")
}

// TestFullWhileCreating: the next Open creates the store.
func TestFullWhileCreating(t *testing.T) {
	dir := mount(t, "size=8k")
	if _, err := store.Open(dir, store.Options{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=1m"))
	put(t, open(t, dir, store.Options{}), "key", "value")
}

// TestRemovedWhileOpen: an update is not answered if no process can open its file later.
func TestRemovedWhileOpen(t *testing.T) {
	for name, remove := range map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"moved":   func(dir string) error { return os.Rename(dir, dir+".moved") },
		"replaced": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".moved"), os.CopyFS(dir, os.DirFS(dir+".moved")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "promises")
			s := open(t, dir, store.Options{})
			put(t, s, "before", "value")
			must(t, remove(dir))
			err := s.Update(func(tx store.Tx) error { tx.Put(1, []byte("after"), nil); return nil })
			if !errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), "removed or replaced") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestOpenSyncs: Open syncs the file before it uses it, because the process before may have
// been killed before the sync of its last commit.
func TestOpenSyncs(t *testing.T) {
	dir := t.TempDir()
	put(t, open(t, dir, store.Options{}), "key", "value")
	b, err := os.ReadFile(file(dir)) // the store is open, as after a kill
	must(t, err)
	second := t.TempDir()
	must(t, os.WriteFile(file(second), b, 0o600))
	for _, trust := range []bool{false, true} {
		syncs := 0
		restore := store.HookOpenSync(func(f *os.File) error {
			if syncs++; f.Name() != file(second) {
				t.Errorf("%s was synced", f.Name())
			}
			return syscall.EIO
		})
		if _, err := store.Open(second, store.Options{TrustFile: trust}); !errors.Is(err, syscall.EIO) || syncs != 1 {
			t.Errorf("trust %v: %d syncs, %v", trust, syncs, err)
		}
		restore()
	}
	if onlyInMemory(t, second) || math.MaxInt == math.MaxInt32 { // the system cannot forget the file, or package pagecache cannot ask it
		defer store.HookDrop(func(*os.File) bool { return true })()
	}
	if got := get(t, open(t, second, store.Options{}), "key"); got != "value" {
		t.Error(got)
	}
}

// TestRestoreSyncs: Restore makes the file durable before it gets its name, and then the name.
func TestRestoreSyncs(t *testing.T) {
	s := open(t, memdir.Quick(t), store.Options{})
	put(t, s, "key", "value")
	b, err := os.ReadFile(backup(t, s))
	must(t, err)
	must(t, s.Close())
	failsync.Check(t, "backup? . store/promises.new store/promises.new? store", func(dir string) func() error {
		name := filepath.Join(dir, "backup")
		must(t, os.WriteFile(name, b, 0o600))
		return func() error { _, _, err := store.Restore(name, filepath.Join(dir, "store"), false); return err }
	})
}

// onlyInMemory reports whether a directory is in a file system without a disk.
func onlyInMemory(t *testing.T, dir string) bool {
	const tmpfs = 0x01021994
	var s syscall.Statfs_t
	must(t, syscall.Statfs(dir, &s))
	return s.Type == tmpfs
}

// TestViewsAwaitTheSync: a view that has seen a commit returns after its sync, or fails
// with it.
func TestViewsAwaitTheSync(t *testing.T) {
	for _, failure := range []error{nil, syscall.EIO} {
		t.Run(fmt.Sprint(failure), func(t *testing.T) {
			s := open(t, t.TempDir(), store.Options{})
			put(t, s, "key", "old")
			syncs, viewed := 0, make(chan error, 1)
			var updated error
			failsync.Watch(t, failsync.Sync, func(failsync.Call) error {
				if syncs++; syncs < 2 {
					return nil
				}
				seen := make(chan string, 1) // the meta page is written, and not synced
				go func() {
					viewed <- s.View(func(tx store.Tx) error { seen <- string(tx.Get(1, []byte("key"))); return nil })
				}()
				if got := <-seen; got != "new" {
					t.Errorf("the view sees %q: the test tests nothing", got)
				}
				select {
				case err := <-viewed:
					t.Errorf("the view returned before the sync: %v", err)
					viewed <- err
				case <-time.After(10 * time.Millisecond): // a correct view waits, however long this is
				}
				return failure
			}, func() {
				updated = s.Update(func(tx store.Tx) error { tx.Put(1, []byte("key"), []byte("new")); return nil })
			})
			if syncs != 2 {
				t.Fatalf("a commit has %d syncs, want 2", syncs)
			}
			for _, err := range []error{updated, <-viewed} {
				if !errors.Is(err, failure) || errors.Is(err, store.ErrFailed) != (failure != nil) {
					t.Error(err)
				}
			}
		})
	}
}

// failsForGood checks that a call fails the store.
func failsForGood(t *testing.T, s *store.Disk, call func() error, text string) {
	t.Helper()
	err := call()
	if !errors.Is(err, store.ErrFailed) || errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), text) {
		t.Fatal(err)
	}
	nothing := func(store.Tx) error { t.Error("called after a failure"); return nil }
	for _, err := range []error{s.Update(nothing), s.View(nothing)} {
		if !errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), text) {
			t.Error(err)
		}
	}
	_ = s.Close() // its file may be invalid
}

// TestFullAtTheMetaPage: some file systems need space to overwrite a page. If the meta page
// was not changed, the transaction was refused; otherwise the state is unknown.
func TestFullAtTheMetaPage(t *testing.T) {
	for _, written := range []int{0, 100} {
		t.Run(fmt.Sprint(written), func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, store.Options{})
			put(t, s, "key", "old")
			full := true
			s.HookWrites(func(f store.WriteAt) store.WriteAt {
				return func(b []byte, at int64) (int, error) {
					if at > pageBytes || !full {
						return f(b, at)
					}
					n, _ := f(b[:written], at)
					return n, &fs.PathError{Op: "write", Path: "promises.db", Err: syscall.ENOSPC}
				}
			})
			update := func() error {
				return s.Update(func(tx store.Tx) error { tx.Put(1, []byte("key"), []byte("new")); return nil })
			}
			if written > 0 {
				failsForGood(t, s, update, "no space left")
				return
			}
			if err := update(); !errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrFailed) {
				t.Fatal(err)
			}
			if got := get(t, s, "key"); got != "old" {
				t.Error(got)
			}
			full = false
			must(t, update())
			must(t, s.Close())
			if got := get(t, open(t, dir, store.Options{}), "key"); got != "new" {
				t.Error(got)
			}
		})
	}
}

// TestDamageWhileOpen damages the file of an open store. Reads return errors, no call
// hangs, and the process does not end.
func TestDamageWhileOpen(t *testing.T) {
	_, _, pages := filled(t)
	for what, damage := range map[string]func(f *os.File) error{
		"a record": func(f *os.File) error {
			at := strings.Index(string(pages), strings.Repeat("\x13", 2000)) // the large value
			_, err := f.WriteAt([]byte("x"), int64(at))
			return err
		},
		"all pages": func(f *os.File) error {
			_, err := f.WriteAt(make([]byte, len(pages)-2*pageBytes), 2*pageBytes)
			return err
		},
		"random pages": func(f *os.File) error {
			b := []byte(strings.Repeat("These are not pages of bbolt. ", len(pages)/30))
			_, err := f.WriteAt(b, 2*pageBytes)
			return err
		},
		"the end is missing": func(f *os.File) error { return f.Truncate(2 * pageBytes) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(file(dir), pages, 0o600))
			s := open(t, dir, store.Options{})
			f, err := os.OpenFile(file(dir), os.O_RDWR, 0)
			must(t, err)
			must(t, damage(f))
			must(t, f.Close())
			all := func(tx store.Tx) error {
				for range store.Records(tx) {
				}
				return nil
			}
			var group sync.WaitGroup
			errs := make([]error, 8)
			for i := range errs {
				group.Go(func() {
					if i%4 == 0 {
						errs[i] = s.Update(func(tx store.Tx) error { _ = all(tx); tx.Put(1, []byte("k"), nil); return nil })
					} else {
						errs[i] = s.View(all)
					}
				})
			}
			group.Wait()
			for _, err := range errs {
				// The system does not say whether a page is missing or cannot be read.
				if _, ok := errors.AsType[*store.DamageError](err); ok == (what == "the end is missing") || !errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), file(dir)) {
					t.Error(err)
				}
			}
			t.Log(errs[1])
			must(t, s.Close())
			if _, err := store.Open(dir, store.Options{}); err == nil {
				t.Error("the damaged file was opened")
			}
		})
	}
}

// TestTrustFile: damage in a file that was not checked is an error when the file is opened
// or when it is read.
func TestTrustFile(t *testing.T) {
	dir, content, pages := filled(t)
	for p := 2 * pageBytes; p < len(pages); p += pageBytes {
		write(t, dir, p, make([]byte, pageBytes))
		s, err := store.Open(dir, store.Options{TrustFile: true})
		if err == nil {
			records := map[string]string{}
			err = s.View(func(tx store.Tx) error {
				for r := range store.Records(tx) {
					records[string(rune(r.Table))+string(r.Key)] = string(r.Value)
				}
				return nil
			})
			must(t, s.Close())
			if err == nil && !maps.Equal(records, content) {
				t.Errorf("page %d: other records without an error", p/pageBytes)
			}
		}
		if _, ok := errors.AsType[*store.DamageError](err); err != nil && !ok {
			t.Errorf("page %d: %v", p/pageBytes, err)
		}
		write(t, dir, p, pages[p:p+pageBytes])
	}
}
