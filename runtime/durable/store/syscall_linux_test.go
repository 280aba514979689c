package store_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/failsync"
	"github.com/topogen/topogen/runtime/durable/store"
)

// TestSyncs: each call syncs by system calls, and returns the error of each sync that fails.
func TestSyncs(t *testing.T) {
	opens := func(t *testing.T, dir string) func() error {
		return func() error {
			s, err := store.Open(dir, store.Options{})
			if err == nil {
				t.Cleanup(func() { _ = s.Close() }) // it is not watched
			}
			return err
		}
	}
	opened := func(t *testing.T, dir string) *store.Disk {
		s := open(t, dir, store.Options{})
		put(t, s, "key", "value")
		return s
	}
	for name, c := range map[string]struct {
		least   []string // files and directories that must be synced
		prepare func(t *testing.T, dir string) (call func() error)
	}{
		"create": {[]string{".", "store/", "store"}, func(t *testing.T, dir string) func() error {
			return opens(t, filepath.Join(dir, "store"))
		}},
		"open": {[]string{".", "store", "store/promises.db"}, func(t *testing.T, dir string) func() error { // the process before may have been killed before its syncs
			dir = filepath.Join(dir, "store")
			must(t, opened(t, dir).Close())
			return opens(t, dir)
		}},
		"update": {[]string{"promises.db"}, func(t *testing.T, dir string) func() error {
			s := opened(t, dir)
			return func() error {
				return s.Update(func(tx store.Tx) error { tx.Put(1, []byte("key"), []byte("new")); return nil })
			}
		}},
		"close": {[]string{"promises.db"}, func(t *testing.T, dir string) func() error {
			return opened(t, dir).Close
		}},
	} {
		t.Run(name, func(t *testing.T) {
			prepare := func(dir string) func() error { return c.prepare(t, dir) }
			synced, err := failsync.Syncs(t, 0, prepare)
			must(t, err)
			for _, file := range c.least {
				if !slices.ContainsFunc(synced, func(s string) bool { return s == file || strings.HasSuffix(file, "/") && strings.HasPrefix(s, file) }) {
					t.Errorf("%s must be synced, got %v", file, synced)
				}
			}
			if left := unsynced(t, c.prepare); len(left) > 0 {
				t.Errorf("the call has written %v after the last sync", left)
			}
			for fail := range len(synced) {
				if _, err := failsync.Syncs(t, fail+1, prepare); err == nil {
					t.Errorf("sync %d of %v has failed; the call returned no error", fail+1, synced)
				}
			}
		})
	}
}

// unsynced returns the files of the store that a call has written and not synced after that.
func unsynced(t *testing.T, prepare func(t *testing.T, dir string) (call func() error)) map[string]bool {
	left := map[string]bool{}
	call := prepare(t, t.TempDir())
	failsync.Watch(t, failsync.Write|failsync.Length|failsync.Sync, func(c failsync.Call) error {
		switch name := filepath.Base(c.Path); {
		case c.Kind == failsync.Sync:
			delete(left, name)
		case strings.HasPrefix(name, "promises."):
			left[name] = true
		}
		return nil
	}, func() { must(t, call()) })
	return left
}
