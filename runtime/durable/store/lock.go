package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/topogen/topogen/runtime/internal/filelock"
	"github.com/topogen/topogen/runtime/internal/regular"
)

// dirLock is the locked file that protects a directory. It contains a description of the
// process that locked it.
type dirLock struct {
	*os.File
	suspected bool // a sync has failed, and the store was not read from the disk since then
}

// Close unlocks the directory.
func (l *dirLock) Close() error {
	var err error
	if !l.suspected {
		err = l.Truncate(0) // so that no later message names this process
	}
	filelock.Unlock(l.File)
	return errors.Join(err, l.File.Close())
}

// lockDir locks a directory, and creates it if it does not exist. It does not wait.
func lockDir(dir string) (*dirLock, error) {
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, fmt.Errorf("store: cannot create the directory of the store: %w", err)
		}
	} else if err != nil { // such as a path below a named pipe, which syncDir would wait to open
		return nil, fmt.Errorf("store: cannot open the directory of the store: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("store: %s must be a directory, got %s", dir, regular.Kind(info.Mode()))
	}
	// Also if the directory exists: the process that created it may have been killed before the sync.
	if err := syncDir(filepath.Dir(filepath.Clean(dir))); err != nil && !errors.Is(err, fs.ErrPermission) { // the process may be allowed to write the parent directory but not to read it
		return nil, fmt.Errorf("store: cannot make the directory of the store durable: %w", err)
	}
	path := filepath.Join(dir, lockName)
	locked, err := tryLock(path)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("store: %s is %w%s", dir, ErrInUse, holder(path))
	}
	if err != nil {
		return nil, fmt.Errorf("store: cannot lock %s: %w", dir, err)
	}
	lock := &dirLock{File: locked}
	lock.suspected = suspected(lock.File)
	lock.describe()
	return lock, nil
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

// suspectHead begins the file of a lock after a sync of the store has failed.
const suspectHead = "A sync of the store has failed. "

// suspected reports whether the file of a lock has the note of [dirLock.suspect].
func suspected(lock *os.File) bool {
	head := make([]byte, len(suspectHead))
	_, err := lock.ReadAt(head, 0)
	return err == nil && string(head) == suspectHead
}

// suspect notes that the file of the store can differ between the disk and the memory of the
// system. The note need not reach the disk: it is for processes that see the same memory. An
// error is ignored: the file has a block for the description, unless the disk was full already.
func (l *dirLock) suspect() {
	l.suspected = true
	l.describe()
}

// trust removes the note of [dirLock.suspect]: the store was read from the disk.
func (l *dirLock) trust() {
	if l.suspected {
		l.suspected = false
		l.describe()
	}
}

// describe writes a description of this process into the file, for the message of another
// process. Errors are ignored: the lock holds without the description.
func (l *dirLock) describe() {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	text := fmt.Sprintf("process %d (%s) on %s since %s", os.Getpid(), filepath.Base(os.Args[0]), host, time.Now().UTC().Format(time.RFC3339))
	if l.suspected {
		text = suspectHead + text
	}
	if _, err := l.WriteAt([]byte(text), 0); err == nil { // first, so that a kill does not remove the note
		_ = l.Truncate(int64(len(text)))
	}
}

// holderBytesMax limits the description of another process.
const holderBytesMax = 300

// holder describes the process that holds a lock, if it is known.
func holder(path string) string {
	f, _, err := regular.OpenOwn(path, os.O_RDONLY)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := io.ReadAll(io.LimitReader(f, holderBytesMax))
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.TrimPrefix(strings.ToValidUTF8(string(b), ""), suspectHead))
	if err != nil || text == "" {
		return ""
	}
	return " by " + text
}
