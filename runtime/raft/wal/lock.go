package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"

	"github.com/topogen/topogen/runtime/internal/filelock"
	"github.com/topogen/topogen/runtime/internal/regular"
)

// Lock locks the directory of a log, and creates the directory if it does not exist. It
// protects the directory before it contains a log. Close the lock before [Open] is
// called.
func Lock(dir string) (io.Closer, error) {
	lock, err := lockDir(dir)
	if err != nil { // a nil *dirLock is not a nil io.Closer
		return nil, err
	}
	return lock, nil
}

// dirLock is the locked file that protects a directory.
type dirLock struct{ *os.File }

// Close unlocks the directory. It does not leave that to the close of the file: a process
// that is being started has copies of all open files for a moment, and until they are
// closed they would keep the directory locked.
func (l *dirLock) Close() error {
	filelock.Unlock(l.File)
	return l.File.Close()
}

// lockDir locks the directory, and creates it if it does not exist.
func lockDir(dir string) (*dirLock, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("wal: %s must be the directory of a log, got a file", dir)
	} else if errors.Is(err, os.ErrNotExist) {
		if err := os.Mkdir(dir, 0o700); errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("wal: cannot write in %s: %w", filepath.Dir(filepath.Clean(dir)), systemError(err))
		} else if err != nil {
			return nil, fmt.Errorf("wal: cannot create the directory of the log: %w", err)
		}
	}
	// Also if the directory exists: the process that created it may have been killed before the sync.
	if err := syncDir(filepath.Dir(filepath.Clean(dir))); err != nil && !errors.Is(err, os.ErrPermission) { // the process may be allowed to write the parent directory but not to read it
		return nil, fmt.Errorf("wal: cannot make the directory of the log durable: %w", err)
	}
	lock, err := tryLock(filepath.Join(dir, lockName))
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("wal: %s is %w", dir, ErrInUse)
	}
	if errors.Is(err, regular.ErrNotRegular) || errors.Is(err, regular.ErrManyNames) {
		return nil, fmt.Errorf("wal: cannot lock %s: %w", filepath.Join(dir, lockName), systemError(err))
	}
	if err != nil {
		return nil, fmt.Errorf("wal: cannot write in %s: %w", dir, systemError(err))
	}
	return &dirLock{lock}, nil
}

// tryLock creates the file of a lock if there is none, and locks it, without waiting. This package
// writes into the file and truncates it, so a link in its place is refused.
func tryLock(path string) (*os.File, error) {
	file, _, err := regular.OpenOwnWith(path, os.O_RDWR|os.O_CREATE, func(path string, flag int, mode os.FileMode) (*os.File, error) {
		locked, err := fileutil.TryLockFile(path, flag, mode)
		if err != nil {
			return nil, err
		}
		return locked.File, nil
	})
	return file, err
}

// segmentLockMax limits the wait for the lock of a segment, and segmentLockPoll is the time
// between two attempts. A process that is being started has copies of closed locks for
// milliseconds, on an overloaded host for longer.
const (
	segmentLockMax  = 5 * time.Second
	segmentLockPoll = time.Millisecond
)

// openSegments opens the engine. The engine locks the last segment, and only the close of
// the file unlocks it. So if this process has just closed the log, openSegments waits until
// no process has a copy of the lock. The caller has locked the directory, so no other log
// uses the segment.
func openSegments(dir string, from *walpb.Snapshot) (*etcdwal.WAL, error) {
	for began := time.Now(); ; time.Sleep(segmentLockPoll) {
		engine, err := etcdwal.Open(zap.NewNop(), dir, from)
		switch {
		case !errors.Is(err, fileutil.ErrLocked):
			return engine, err
		case time.Since(began) > segmentLockMax: // by a program that does not lock the directory
			return nil, fmt.Errorf("%s is %w", dir, ErrInUse)
		}
	}
}
