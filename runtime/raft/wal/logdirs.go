package wal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	findMax   = 20   // logs: a person reads their names
	findDepth = 2    // directories: of groups, with those of their nodes
	findRead  = 1000 // entries of a directory: it may be anybody's
)

// Find returns the directories below one that hold logs: those of the nodes of a
// group, or of several groups.
func Find(dir string) []string { return find(nil, dir, findDepth) }

func find(found []string, dir string, depth int) []string {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() { // opening a named pipe would block
		return found
	}
	d, err := os.Open(dir)
	if err != nil {
		return found
	}
	entries, _ := d.ReadDir(findRead)
	_ = d.Close()
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if !e.IsDir() || len(found) == findMax {
			continue
		}
		below := filepath.Join(dir, e.Name())
		if all, err := segments(filepath.Join(below, segmentsDir)); len(all) > 0 || errors.Is(err, ErrDamaged) {
			found = append(found, below)
		} else if depth > 1 {
			found = find(found, below, depth-1)
		}
	}
	return found
}
