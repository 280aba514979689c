package bind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// patience is how long the go command may list packages before we look whether
	// it waits for a pipe. It mostly takes a tenth of that.
	patience = 2 * time.Second

	entriesMax = 1 << 17 // of a tree that is looked through: a second
)

var errEnough = errors.New("enough")

// endless is a file that the go command would open, at dir, below it or beside a
// go.work or go.mod above it, and whose end it would wait for: a pipe or a device.
// "" if there is none.
func endless(dir string, also ...string) (found string) {
	for at := dir; ; at = filepath.Dir(at) {
		for _, name := range []string{"go.mod", "go.sum", "go.work", "go.work.sum", filepath.Join("vendor", "modules.txt")} {
			also = append(also, filepath.Join(at, name))
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	for _, file := range also {
		if irregular(file) {
			return file
		}
	}
	seen := 0
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		seen++
		switch {
		case seen > entriesMax:
			return errEnough
		case err != nil || path == dir: // for the go command to say
		case strings.ContainsAny(entry.Name()[:1], "_.") && entry.IsDir():
			return fs.SkipDir
		case filepath.Ext(path) == ".go" && !entry.Type().IsRegular() && irregular(path):
			found = path
			return errEnough
		}
		return nil
	})
	return found
}

func irregular(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// impatient calls list, and ends it where it would wait for a file without end.
func (l *loader) impatient(list func() error, cancel func()) error {
	done := make(chan error, 1)
	go func() { done <- list() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
	}
	file := endless(l.dir, l.env.value["GOWORK"])
	if file == "" {
		return <-done
	}
	cancel()
	if <-done == nil {
		return nil // it was only slow
	}
	return fmt.Errorf("the go command would wait for the end of %s, which is not a regular file", file)
}
