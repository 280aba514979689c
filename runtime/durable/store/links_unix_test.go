//go:build unix

package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/durable/store"
)

// TestLinks: a link in place of a file of the store is refused, and the file behind it stays as
// it was.
func TestLinks(t *testing.T) {
	for _, name := range []string{"lock", "promises.db"} {
		for kind, link := range map[string]func(string, string) error{"a symbolic link": os.Symlink, "2 names": os.Link} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				dir, _, pages := filled(t)
				path, other := filepath.Join(dir, name), filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".other")
				must(t, os.WriteFile(other, pages, 0o600))
				defer os.Remove(other)
				must(t, os.Remove(path))
				must(t, link(other, path))
				_, err := store.Open(dir, store.Options{})
				if err == nil || !strings.Contains(err.Error(), kind) || !strings.Contains(err.Error(), path) {
					t.Errorf("got %v", err)
				}
				if after := read(t, other); !bytes.Equal(after, pages) {
					t.Errorf("the file behind the link has %d bytes, want %d", len(after), len(pages))
				}
				_, err = store.OpenReadOnly(dir, store.Options{})
				if symbolic := kind == "a symbolic link"; symbolic != (err != nil && strings.Contains(err.Error(), kind)) {
					t.Errorf("read only: %v", err)
				}
			})
		}
	}
}

// TestLinkAsHolder: the message of a locked directory does not show the file behind a link.
func TestLinkAsHolder(t *testing.T) {
	dir := memdir.Quick(t)
	s := open(t, dir, store.Options{})
	defer s.Close()
	other, lock := filepath.Join(memdir.Quick(t), "other"), filepath.Join(dir, "lock")
	must(t, os.WriteFile(other, []byte("a password"), 0o600))
	must(t, os.Remove(lock))
	must(t, os.Symlink(other, lock))
	if _, err := store.Open(dir, store.Options{}); err == nil || strings.Contains(err.Error(), "password") {
		t.Errorf("got %v", err)
	}
}

// TestInterruptedRestore: a process that was killed while it replaced a store leaves two names of
// the old file. The store opens, and its file has one name then.
func TestInterruptedRestore(t *testing.T) {
	dir, content, _ := filled(t)
	must(t, os.Link(file(dir), file(dir)+".old-20260102T030405Z"))
	must(t, os.WriteFile(file(dir)+".old-20260102T030406Z", []byte("an older store"), 0o600))
	s := open(t, dir, store.Options{})
	if got := dump(t, s); len(got) != len(content) {
		t.Errorf("the store has %d records, want %d", len(got), len(content))
	}
	must(t, s.Close())
	left, err := filepath.Glob(file(dir) + ".old-*")
	if err != nil || len(left) != 1 || !strings.HasSuffix(left[0], "06Z") {
		t.Errorf("files that were put aside: %v %v", left, err)
	}
}
