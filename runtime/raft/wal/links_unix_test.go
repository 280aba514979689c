//go:build unix

package wal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestLinks: a link in place of a file of the log is refused, and the file behind it stays as it
// was.
func TestLinks(t *testing.T) {
	for _, pattern := range []string{"lock", "wal/*.wal", "snap/*.snap"} {
		for kind, link := range map[string]func(string, string) error{"a symbolic link": os.Symlink, "2 names": os.Link} {
			if kind == "2 names" && pattern == "snap/*.snap" {
				continue // it is only read
			}
			t.Run(pattern+"/"+kind, func(t *testing.T) {
				d := smallLog(t)
				all := files(t, d.dir, filepath.Dir(pattern), filepath.Base(pattern))
				name := all[len(all)-1]
				other := filepath.Join(memdir.Quick(t), "other")
				content, err := os.ReadFile(name)
				must(t, err)
				content = append(content, "text of another program"...)
				must(t, os.WriteFile(other, content, 0o600))
				must(t, os.Remove(name))
				if link(other, name) != nil {
					t.Skip("the two folders are on different file systems")
				}
				_, _, err = wal.Open(d.dir, own, wal.Options{})
				if err == nil || !strings.Contains(err.Error(), kind) || !strings.Contains(err.Error(), name) {
					t.Errorf("got %v", err)
				}
				if after, err := os.ReadFile(other); err != nil || string(after) != string(content) {
					t.Errorf("the file behind the link has %q: %v", after, err)
				}
			})
		}
	}
}
