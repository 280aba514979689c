package raft

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// KeptSuffix is the suffix that FoundInPlace appends to the folder that it replaces.
const KeptSuffix = ".old"

const recoveringSuffix = ".recovering" // of the folder that FoundInPlace writes

// ErrFolder is matched by errors that say why a folder cannot be recovered in place.
var ErrFolder = errors.New("raft: the folder was not changed")

// CheckPlace returns the reason why FoundInPlace would fail. It changes nothing.
func (i *Image) CheckPlace(node, address string) error {
	dir := filepath.Clean(i.dir)
	want := i.LogPath("", node, address)
	switch {
	case i.dir == "":
		return fmt.Errorf("%w: a backup is not the folder of a node", ErrFolder)
	case address == "":
		return fmt.Errorf("%w: to replace one of several nodes, name the address of the new node", ErrFolder)
	case !endsWith(dir, want):
		return fmt.Errorf("%w: the path of the log of node %q must end with %s, got %q; name another path for the new log", ErrFolder, node, want, i.dir)
	}
	for _, path := range []string{dir + KeptSuffix, dir + recoveringSuffix} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			return errors.Join(fmt.Errorf("%w: %s already exists, from an earlier attempt; move it away", ErrFolder, path), err)
		}
	}
	return nil
}

// endsWith reports whether the last elements of a path are the elements of end.
func endsWith(path, end string) bool {
	absolute, err := filepath.Abs(path)
	return err == nil && strings.HasSuffix(absolute, string(filepath.Separator)+end)
}

// FoundInPlace founds a group of one member, like Found, and replaces the folder that the
// image was opened from. Its path must end with the name of the node, and with the number of
// the instance if there are several. The old folder stays in the same parent folder, under the
// path kept. The node must not run: its folder is locked while it is replaced.
func (i *Image) FoundInPlace(node, address string) (kept string, err error) {
	if err := i.CheckPlace(node, address); err != nil {
		return "", err
	}
	dir := filepath.Clean(i.dir)
	above := filepath.Dir(dir)
	kept, next := dir+KeptSuffix, dir+recoveringSuffix
	if err := i.foundAt(next, node, address); err != nil {
		return "", errors.Join(err, os.RemoveAll(next))
	}
	lock, err := wal.Lock(dir)
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(next))
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := i.unchanged(); err != nil {
		return "", errors.Join(err, os.RemoveAll(next))
	}
	if err := os.Rename(dir, kept); err != nil {
		return "", errors.Join(err, os.RemoveAll(next))
	}
	if err := os.Rename(next, dir); err != nil {
		return kept, fmt.Errorf("raft: the folder of the new group is complete but still has its temporary name: rename %s to %s: %w", next, dir, err)
	}
	return kept, syncFolder(above)
}

// foundAt founds a group on the disk in a folder that does not exist yet.
func (i *Image) foundAt(dir, node, address string) (err error) {
	disk, err := OpenFolder(dir, wal.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	return i.foundIn(dir, disk, node, address)
}

// unchanged returns an error if the node has run since the image was opened.
func (i *Image) unchanged() error {
	report, err := wal.Verify(i.dir)
	if err != nil {
		return err
	}
	before := i.report
	report.Cut, before.Cut = nil, nil
	if report != before {
		return fmt.Errorf("%w: the node ran while its folder was read; stop it, and begin again", ErrFolder)
	}
	return nil
}
