package cache

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// listing is the Go files of a folder, by name.
type listing struct {
	dir    string
	names  []string // sorted
	failed bool     // the folder is there and cannot be read
}

// list returns the names that the go command would look at: it ignores what
// begins with a dot or an underscore, editors' locks and backups among them. A
// folder that does not exist has no names.
func list(dir string) listing {
	l := listing{dir: dir}
	f, err := os.Open(dir)
	if err != nil {
		l.failed = !errors.Is(err, fs.ErrNotExist)
		return l
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	l.failed = err != nil
	l.names = slices.DeleteFunc(names, func(name string) bool {
		return filepath.Ext(name) != ".go" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
	})
	slices.Sort(l.names)
	return l
}

// without returns the names less those of the paths given.
func (l listing) without(paths map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(l.names), func(name string) bool { return paths[filepath.Join(l.dir, name)] })
}

func (l listing) sum() [sha256.Size]byte {
	// No file name holds a slash or a zero.
	return sha256.Sum256([]byte(strings.Join(l.names, "\x00")))
}
