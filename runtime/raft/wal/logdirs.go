package wal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	findMax   = 20   // logs; a person reads the list
	findDepth = 2    // levels: directories of groups, which contain directories of nodes
	findRead  = 1000 // directory entries; the directory may be unrelated and large
)

// Find returns the directories below dir that contain logs: the nodes of one group, or of
// several groups.
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
