package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/topogen/topogen/runtime/internal/filelock"
	"github.com/topogen/topogen/runtime/internal/regular"
)

// Names in the directory of a store.
const (
	fileName    = "promises.db"
	newFileName = "promises.new" // a store that is being created
	lockName    = "lock"
)

// Options are the settings of a [Disk]. The zero value is a good choice.
type Options struct {
	// MaxBytes limits the file. A transaction that needs more gets ErrFull. 0: no limit.
	MaxBytes int64
	// TrustFile skips the check of a file that was closed. Damage then surfaces when it is
	// read, and damage of the structure can end the process. It is for files so large that
	// the check takes too long, on disks that have checksums of their own.
	TrustFile bool
	// MustExist refuses a directory without a store, with an error that matches
	// fs.ErrNotExist, in place of creating a store there.
	MustExist bool
	// Logger receives a warning if the last commit was incomplete. nil: slog.Default.
	Logger *slog.Logger
}

// mapBytes is the address space that is reserved for the file from the beginning. Until
// the file has outgrown it, a commit need not wait for views to end. It takes no memory.
const mapBytes = 1 << 30

// Disk is a store in a file of bbolt.
type Disk struct {
	path   string
	id     string
	lock   *dirLock
	db     *bbolt.DB
	file   *os.File // of db
	failed atomic.Pointer[error]

	mu     sync.RWMutex // held by a transaction for reading, by Close for writing
	closed bool

	writer sync.Mutex // held during an Update
	totals totals     // of the last commit
	ahead  ahead
	arena  arena
	sync   func() error // of the file
	synced synced
}

// Open opens the store in a directory, and creates both if they do not exist, unless
// Options.MustExist is set. It reads the whole file and refuses a damaged one with a
// [DamageError].
func Open(dir string, o Options) (*Disk, error) {
	if o.MustExist {
		if _, err := os.Stat(filepath.Join(dir, fileName)); err != nil {
			return nil, fmt.Errorf("store: there is no store in %s: %w", dir, err)
		}
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	d, err := open(dir, o)
	if err != nil {
		_ = lock.Close() // the first error counts
		return nil, err
	}
	d.lock = lock
	return d, nil
}

// open opens the store in a locked directory.
func open(dir string, o Options) (*Disk, error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := create(dir); err != nil {
			return nil, fmt.Errorf("store: cannot create a store in %s: %w", dir, err)
		}
	}
	if err := check(path, o); err != nil {
		return nil, err
	}
	d := &Disk{path: path}
	return d, d.start(o)
}

// check verifies a file. It removes the last commit if that is incomplete. The file is
// synced before it is used: if the process was killed before the sync of its last commit,
// the system may still have pages of this commit in memory alone. The next commit
// overwrites pages of the commit before, so one of the two must be on the disk.
func check(path string, o Options) error {
	file, size, err := openRegular(path, os.O_RDWR)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it is synced
	if !o.TrustFile || !wasClosed(path, file, size) {
		report, err := verify(path, file)
		if err != nil {
			return err
		}
		if len(report.Damage) > 0 {
			return report.Damage[0]
		}
		if report.Incomplete != nil {
			if err := removeLast(file, report, o.Logger); err != nil {
				return fmt.Errorf("store: cannot remove an incomplete commit: %w", err)
			}
		}
	}
	if err := syncFile(file); err != nil {
		return fmt.Errorf("store: cannot make the last commit durable: %w", err)
	}
	return nil
}

// syncFile is a variable for tests.
var syncFile = (*os.File).Sync

// wasClosed reports whether the last two commits are the same.
func wasClosed(path string, file *os.File, size int64) bool {
	m, err := readMetas(path, file, size)
	return err == nil && m.before != nil && m.before.root == m.newest.root
}

// removeLast removes the meta page of an incomplete commit. Without it the commit does not
// exist for bbolt.
func removeLast(file *os.File, report Report, logger *slog.Logger) error {
	if logger == nil {
		logger = slog.Default()
	}
	logger.Warn("store: a commit is incomplete, because the power failed while it was written; the store continues with the commit before", "file", file.Name(), "commit", report.Commits, "damage", report.Incomplete.Error())
	_, err := file.WriteAt(make([]byte, pageBytes), int64((report.Commits+1)%2)*pageBytes)
	return err
}

// openRegular opens a file that must be a regular one.
func openRegular(path string, flag int) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, fmt.Errorf("store: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("store: %s is %s, so it is %w", path, regular.Kind(info.Mode()), ErrNotAStore)
	}
	file, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("store: %w", err)
	}
	return file, info.Size(), nil
}

// start opens the file with bbolt.
func (d *Disk) start(o Options) error {
	var err error
	d.db, d.file, err = openFile(d.path, o)
	if err != nil {
		return err
	}
	d.sync = d.db.Sync
	d.synced.changed.L = &d.synced.mu
	err = d.guard(func() error {
		return d.db.View(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(metaBucketName))
			if b == nil {
				return fmt.Errorf("store: %s is a file of bbolt, but %w", d.path, ErrNotAStore)
			}
			f, err := decodeFormat(b.Get([]byte(formatKey)))
			if err != nil {
				return fmt.Errorf("store: %s: %w", d.path, err)
			}
			d.id = f.ID
			d.synced.commit = uint64(tx.ID())
			d.totals, err = decodeTotals(b.Get([]byte(totalsKey)))
			return err
		})
	})
	if err != nil {
		_ = d.db.Close() // the first error counts
	}
	return err
}

// openFile opens a file with bbolt.
func openFile(path string, o Options) (db *bbolt.DB, file *os.File, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil { // the file is damaged, and was not checked
			filelock.Unlock(file) // the memory to which the file is mapped keeps it open
			_ = file.Close()      // the first error counts
			err = panicked(path, r)
		}
	}()
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         1, // ns: the directory is locked, so another program has opened the file
		FreelistType:    bbolt.FreelistMapType,
		NoFreelistSync:  true, // each commit would write the whole list, up to a megabyte for a million promises
		InitialMmapSize: mapBytes,
		MaxSize:         int(o.MaxBytes),
		PageSize:        pageBytes,
		NoStatistics:    true,
		NoSync:          true, // a commit syncs once, after bbolt has written everything
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag, mode)
			file = f
			return f, err
		},
	})
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return nil, nil, fmt.Errorf("store: %s is %w by another program that opened the file without the lock of the directory", path, ErrInUse)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("store: cannot open %s: %w", path, err)
	}
	return db, file, nil
}

// create makes an empty store. The file gets its name when it is complete, so that a
// crash does not leave a file that is not a store.
func create(dir string) error {
	path := filepath.Join(dir, newFileName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db, _, err := openFile(path, Options{})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte(metaBucketName))
		if err != nil {
			return err
		}
		f := format{Kind: kind, Version: formatVersion, ID: rand.Text()}
		return errors.Join(b.Put([]byte(formatKey), f.encode()), b.Put([]byte(totalsKey), new(totals).encode()))
	})
	if err == nil {
		err = db.Sync()
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Rename(path, filepath.Join(dir, fileName)); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Verify reads the store in a directory completely and reports damage. It does not change
// it. The error is not nil if the store is in use, is not a store or cannot be read.
func Verify(dir string) (Report, error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return Report{}, fmt.Errorf("store: %s has no store: %w", dir, err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = lock.Close() }() // nothing was written
	file, _, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return verify(path, file)
}

// ID returns the identity of the store, which was drawn when it was created.
func (d *Disk) ID() string { return d.id }

// Bytes returns the length of the file.
func (d *Disk) Bytes() int64 {
	info, err := os.Stat(d.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Close implements [Store].
func (d *Disk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	d.closed = true
	var err error
	if d.failed.Load() == nil {
		err = d.lastCommit()
	}
	return errors.Join(err, d.guard(d.db.Close), d.lock.Close())
}

// lastCommit makes a commit without changes. The last two commits are then the same, and
// damage in the last one is not mistaken for a commit that the power interrupted. It writes
// the list of free pages, so that the next start need not search for them.
func (d *Disk) lastCommit() error {
	err := d.guard(func() error {
		d.db.NoFreelistSync = false
		tx, err := d.db.Begin(true)
		if err != nil {
			return err
		}
		return tx.Commit()
	})
	if full(err) {
		return nil // the file is as valid as it was
	}
	if err == nil {
		err = d.sync()
	}
	return err
}
