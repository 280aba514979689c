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

// listing has the names of the Go files of a folder.
type listing struct {
	dir    string
	names  []string // sorted
	failed bool     // the folder exists but cannot be read
}

// list returns the names that the go command reads. The go command ignores names that begin
// with a dot or an underscore, such as locks and backups of editors. A folder that does not
// exist has no names.
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

// paths returns the paths of the files.
func (l listing) paths() []string {
	paths := make([]string, len(l.names))
	for i, name := range l.names {
		paths[i] = filepath.Join(l.dir, name)
	}
	return paths
}

// without returns the paths of the files except the given paths.
func (l listing) without(given map[string]bool) []string {
	return slices.DeleteFunc(l.paths(), func(path string) bool { return given[path] })
}

func (l listing) sum() sum {
	// A file name contains neither a slash nor a zero byte.
	return sha256.Sum256([]byte(strings.Join(l.names, "\x00")))
}

// absolute returns the paths as absolute paths, each once. Without a working directory it
// omits relative paths.
func absolute(paths []string) []string {
	list := make([]string, 0, len(paths))
	for _, path := range paths {
		if abs, err := filepath.Abs(path); err == nil {
			list = append(list, abs)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
