package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/topogen/topogen/runtime/internal/filelock"
	"github.com/topogen/topogen/runtime/internal/regular"
)

// ReadOnly is a store that is only read. Nothing in its directory changes, so the directory
// may be on a file system that is mounted for reading, and may belong to another user. Several
// processes can read a store at a time. None of them can if a process has it open with [Open].
type ReadOnly struct {
	disk *Disk // without its lock; only its path and its db are used
	lock *sharedLock

	mu     sync.RWMutex // held by a transaction for reading, by Close for writing
	closed bool
}

var _ Store = (*ReadOnly)(nil)

// OpenReadOnly opens the store in a directory for reading. It verifies the file as [Open]
// does, unless Options.TrustFile is set.
func OpenReadOnly(dir string, o Options) (*ReadOnly, error) {
	path := filepath.Join(dir, fileName)
	lock, err := shareDir(dir)
	if err != nil {
		return nil, err
	}
	r := &ReadOnly{disk: &Disk{path: path}, lock: lock}
	if err := r.open(o); err != nil {
		_ = lock.Close() // the first error counts
		return nil, err
	}
	return r, nil
}

// open verifies the file and opens it with bbolt.
func (r *ReadOnly) open(o Options) error {
	if !o.TrustFile || r.lock.lock != nil && suspected(r.lock.lock) {
		report, err := r.lock.verify()
		if err == nil && len(report.Damage) > 0 {
			err = report.Damage[0]
		}
		if err != nil {
			return err
		}
	}
	err := r.disk.guard(func() (err error) {
		r.disk.db, err = bbolt.Open(r.disk.path, 0, &bbolt.Options{
			Timeout:  1, // ns: the directory is locked, so another program has opened the file
			ReadOnly: true, PageSize: pageBytes, NoStatistics: true,
			OpenFile: func(name string, flag int, _ os.FileMode) (*os.File, error) {
				f, _, err := regular.OpenOwn(name, flag)
				return f, err
			},
		})
		return err
	})
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return fmt.Errorf("store: %s is %w by another program that opened the file without the lock of the directory", r.disk.path, ErrInUse)
	}
	if err != nil {
		return fmt.Errorf("store: cannot open %s: %w", r.disk.path, err)
	}
	if err := r.checkFormat(); err != nil {
		_ = r.disk.guard(r.disk.db.Close) // nothing was written
		return err
	}
	return nil
}

// checkFormat refuses a file that is not a store of a known format.
func (r *ReadOnly) checkFormat() error {
	return r.disk.guard(func() error {
		return r.disk.db.View(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(metaBucketName))
			if b == nil {
				return fmt.Errorf("store: %s is a file of bbolt, but %w", r.disk.path, ErrNotAStore)
			}
			if _, err := decodeFormat(b.Get([]byte(formatKey))); err != nil {
				return fmt.Errorf("store: %s: %w", r.disk.path, err)
			}
			return nil
		})
	})
}

// View implements [Store].
func (r *ReadOnly) View(f func(Tx) error) error {
	return r.transact(func(tx *bbolt.Tx) error {
		x := &diskTx{disk: r.disk, tx: tx}
		return run(x, f)
	})
}

// transact calls f with a transaction of bbolt.
func (r *ReadOnly) transact(f func(*bbolt.Tx) error) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return ErrClosed
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var tx *bbolt.Tx
	err := r.disk.guard(func() (err error) {
		tx, err = r.disk.db.Begin(false)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = r.disk.guard(tx.Rollback) }() // nothing was written
	return f(tx)
}

// Update returns [ErrReadOnly].
func (r *ReadOnly) Update(func(Tx) error) error { return ErrReadOnly }

// Close implements [Store].
func (r *ReadOnly) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	r.closed = true
	return errors.Join(r.disk.guard(r.disk.db.Close), r.lock.Close())
}

// A sharedLock keeps other processes from opening a store with [Open] while it is read.
type sharedLock struct {
	file *os.File // of the store
	lock *os.File // of the directory; nil: there is none, or this user may not read it
}

// shareDir locks the store in a directory for reading. It changes nothing, and in particular
// creates no file: a directory without a lock file is a copy that no process has opened. The
// lock of bbolt on the file of the store then has to suffice: a process that has opened the
// store holds it.
func shareDir(dir string) (*sharedLock, error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("store: %s has no store: %w", dir, err)
	}
	l := &sharedLock{}
	var err error
	if l.lock, _, err = regular.OpenOwn(filepath.Join(dir, lockName), os.O_RDONLY); err == nil {
		err = share(dir, l.lock)
	} else if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		err = nil
	} else {
		err = fmt.Errorf("store: cannot lock %s: %w", dir, err)
	}
	if err == nil {
		l.file, _, err = openOwn(path, os.O_RDONLY)
	}
	if err == nil {
		err = share(dir, l.file)
	}
	if err != nil {
		_ = l.Close() // the first error counts
		return nil, err
	}
	return l, nil
}

// verify verifies the store as [Open] does.
func (l *sharedLock) verify() (Report, error) {
	if l.lock != nil && suspected(l.lock) {
		_ = syncFile(l.file) // only synced pages can be forgotten, and this is what the next line checks
		if err := forget(l.file, l.lock, true); err != nil {
			return Report{}, err
		}
	}
	return VerifyFile(l.file.Name())
}

// share locks a file of a store for reading.
func share(dir string, file *os.File) error {
	switch ok, err := filelock.Share(file); {
	case err != nil:
		return fmt.Errorf("store: cannot lock %s: %w", file.Name(), err)
	case !ok:
		return fmt.Errorf("store: %s is %w%s", dir, ErrInUse, holder(filepath.Join(dir, lockName)))
	}
	return nil
}

// Close unlocks the store.
func (l *sharedLock) Close() error {
	var errs []error
	for _, f := range []*os.File{l.file, l.lock} {
		if f != nil {
			filelock.Unlock(f)
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
