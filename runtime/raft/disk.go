package raft

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/topogen/topogen/runtime/internal/regular"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// Disk is where a node keeps what it must not forget: whose the disk is, and the log.
// A record without a GroupID says that the node has promised nothing to any other, so
// that a log beside it may be removed.
type Disk interface {
	// Record is what the disk says. It is the zero Record where nothing was written yet.
	Record() (Record, error)
	// SetRecord is durable on return.
	SetRecord(Record) error
	// HasLog reports whether there is a log.
	HasLog() (bool, error)
	// Open opens the log, which is made where there is none.
	Open(wal.Identity) (wal.Log, wal.Stored, error)
	// RemoveLog removes the log, which is not open.
	RemoveLog() error
	// Close lets go of the disk. The log is closed before.
	Close() error
}

// in the folder of the log
const (
	recordFile     = "member"
	unfinishedFile = "unfinished" // while a group is founded there from an Image
)

// checkFinished refuses a folder that holds only a part of an Image.
func checkFinished(dir string) error {
	switch _, err := os.Lstat(filepath.Join(dir, unfinishedFile)); {
	case err == nil:
		return fmt.Errorf("raft: topoctl raft restore, or recover, was interrupted while it wrote %s: remove this folder, and begin again", dir)
	case !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("raft: %w", err)
	}
	return nil
}

// setUnfinished says durably whether a group is being founded in a folder, which is there.
func setUnfinished(dir string, is bool) error {
	path := filepath.Join(dir, unfinishedFile)
	if !is {
		return errors.Join(os.Remove(path), syncFolder(dir))
	}
	return errors.Join(os.WriteFile(path, nil, 0o600), syncFolder(dir))
}

// folder is a Disk in files.
type folder struct {
	dir     string
	options wal.Options
	lock    io.Closer // while no log is open
}

// OpenFolder takes the folder of a log, which is made if the one above it is there.
func OpenFolder(dir string, o wal.Options) (Disk, error) {
	lock, err := wal.Lock(dir)
	if err != nil {
		return nil, err
	}
	return &folder{dir, o, lock}, nil
}

func (f *folder) Record() (r Record, err error) {
	if err := checkFinished(f.dir); err != nil {
		return r, err
	}
	path := filepath.Join(f.dir, recordFile)
	file, _, err := regular.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		defer func() { _ = file.Close() }() // nothing was written to it
		var b []byte
		if b, err = io.ReadAll(io.LimitReader(file, recordBytesMax+1)); err == nil {
			if r, err = readRecord(b); err == nil {
				return r, nil
			}
		}
	}
	if errors.Is(err, os.ErrPermission) {
		return r, fmt.Errorf("raft: cannot read the file that says whose log is beside it: %w. Give the user that runs this program access to the folder and its files; remove nothing", err)
	}
	return r, fmt.Errorf("raft: cannot read %s, which says whose log is beside it: %w. Put back the file that was there. If that file is lost, the log cannot be used: remove the member (topoctl raft remove), empty the folder, start the node, and add it (topoctl raft add)", path, err)
}

// SetRecord writes beside the file and renames, so that after a crash there is the old
// record or the new one.
func (f *folder) SetRecord(r Record) error {
	path := filepath.Join(f.dir, recordFile)
	file, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("raft: %w", err)
	}
	_, err = file.Write(appendRecord(nil, r))
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = errors.Join(os.Rename(path+".tmp", path), syncFolder(f.dir))
	}
	if err != nil {
		return fmt.Errorf("raft: %w", err)
	}
	return nil
}

func (f *folder) HasLog() (bool, error) { return holdsLog(f.dir), nil }

func (f *folder) Open(id wal.Identity) (wal.Log, wal.Stored, error) {
	if err := f.Close(); err != nil { // the log has a lock of its own
		return nil, wal.Stored{}, err
	}
	return wal.Open(f.dir, id, f.options)
}

func (f *folder) RemoveLog() error {
	err := cmp.Or(os.RemoveAll(filepath.Join(f.dir, "wal")), os.RemoveAll(filepath.Join(f.dir, "snap")), syncFolder(f.dir))
	if err != nil {
		return fmt.Errorf("raft: %w", err)
	}
	return nil
}

func (f *folder) Close() error {
	lock := f.lock
	f.lock = nil
	if lock == nil {
		return nil
	}
	return lock.Close()
}

// syncFolder makes durable which files are in a folder.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
