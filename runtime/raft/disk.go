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

// Disk stores what a node must not lose: its record and its log. If the record has no
// GroupID, the node has not promised anything to other nodes. In this case the log on the
// same disk may be removed.
type Disk interface {
	// Record returns the record, which is durable. It is the zero Record if none was written
	// yet.
	Record() (Record, error)
	// SetRecord writes the record, durably.
	SetRecord(Record) error
	// HasLog reports whether there is a log.
	HasLog() (bool, error)
	// Open opens the log, and creates it if there is none.
	Open(wal.Identity) (wal.Log, wal.Stored, error)
	// RemoveLog removes the log, which must not be open.
	RemoveLog() error
	// Close releases the disk. The log must have been closed.
	Close() error
}

// Files in the folder of the log.
const (
	recordFile     = "member"
	unfinishedFile = "unfinished" // exists while a group is founded in the folder from an Image
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

// setUnfinished creates or removes, durably, the file that marks a folder as unfinished.
func setUnfinished(dir string, is bool) error {
	path := filepath.Join(dir, unfinishedFile)
	if !is {
		return errors.Join(os.Remove(path), syncFolder(dir))
	}
	file, err := regular.CreateNew(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), syncFolder(dir))
}

// folder is a Disk in files.
type folder struct {
	dir     string
	options wal.Options
	lock    io.Closer // held while no log is open
}

// OpenFolder locks the folder of a log. It creates the folder if its parent exists.
func OpenFolder(dir string, o wal.Options) (Disk, error) {
	lock, err := wal.Lock(dir)
	if err != nil {
		return nil, err
	}
	return &folder{dir, o, lock}, nil
}

// errNoRecord is matched by the error for a record that cannot be read.
var errNoRecord = errors.New("raft: cannot read")

// Record syncs the folder before it reads, because after a failed sync the names in the folder
// may be only in memory. Without this sync, a power failure could bring back an older record, or
// the file of an unfinished image, after the node has made promises to other nodes.
func (f *folder) Record() (r Record, err error) {
	if err := syncFolder(f.dir); err != nil {
		return r, fmt.Errorf("raft: %w", err)
	}
	if err := checkFinished(f.dir); err != nil {
		return r, err
	}
	return readRecordIn(f.dir)
}

// CheckRecord returns an error if the record in the folder of a log is missing or does not belong
// to the log with the identity id, so that the node does not start. It changes nothing.
func CheckRecord(dir string, id wal.Identity) error {
	r, err := readRecordIn(dir)
	path := filepath.Join(dir, recordFile)
	switch own := r.identity(); {
	case err != nil:
		return err
	case r.ID == 0 && id.Node != MemberID(id.Name): // otherwise the log is older than records
		return fmt.Errorf("raft: %s, which identifies the node of this log, is missing", path)
	case r.ID != 0 && (own.Topology != id.Topology || own.Group != id.Group || own.Node != id.Node):
		return fmt.Errorf("raft: %s is the record of %v with id %016x, not of this log", path, own, own.Node)
	}
	return nil
}

func readRecordIn(dir string) (r Record, err error) {
	path := filepath.Join(dir, recordFile)
	file, _, err := regular.OpenOwn(path, os.O_RDONLY)
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
		return r, fmt.Errorf("raft: cannot read the file that identifies the node of this log: %w. Give the user that runs this program access to the folder and its files; do not remove any of them", err)
	}
	return r, fmt.Errorf("%w %s, which identifies the node of this log: %w. Put back the file that was there", errNoRecord, path, err)
}

// SetRecord writes a new file and renames it, so that after a crash there is either the
// old record or the new one.
func (f *folder) SetRecord(r Record) error {
	path := filepath.Join(f.dir, recordFile)
	file, err := regular.CreateNew(path + ".tmp")
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
	if err := f.Close(); err != nil { // the log has its own lock
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

// syncFolder makes the names of the files in a folder durable.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
