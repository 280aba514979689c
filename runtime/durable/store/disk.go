package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
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
	// AcceptOlder opens a file with one invalid meta page. The page is invalid if the
	// power failed while it was written, on a disk that can tear a sector of 512 bytes.
	// Then no answered commit is lost. If the disk damaged the page later, the last commit
	// is lost. The store cannot tell the two apart, so an operator must decide.
	AcceptOlder bool
	// TrustFile skips the check of the file. Damage then surfaces when it is read, and
	// damage of the structure can end the process. It is for files so large that the check
	// takes too long, on disks that have checksums of their own.
	TrustFile bool
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
	arena  arena
}

// Open opens the store in a directory, and creates both if they do not exist. It reads
// the whole file and refuses a damaged one with a [DamageError].
func Open(dir string, o Options) (*Disk, error) {
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
	if !o.TrustFile {
		report, err := verifyFile(path, o.AcceptOlder)
		if err != nil {
			return nil, err
		}
		if len(report.Damage) > 0 {
			return nil, report.Damage[0]
		}
	}
	d := &Disk{path: path}
	return d, d.start(o)
}

// start opens the file with bbolt.
func (d *Disk) start(o Options) error {
	var err error
	d.db, d.file, err = openFile(d.path, o)
	if err != nil {
		return err
	}
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
		InitialMmapSize: mapBytes,
		MaxSize:         int(o.MaxBytes),
		PageSize:        pageBytes,
		NoStatistics:    true,
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

// verifyFile reads a file with a verifier.
func verifyFile(path string, older bool) (Report, error) {
	file, _, err := regular.Open(path)
	if err != nil {
		return Report{}, fmt.Errorf("store: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	return verify(path, file, older)
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
	report, err := verifyFile(path, false)
	return report, errors.Join(err, lock.Close())
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
	err := d.guard(d.db.Close)
	return errors.Join(err, d.lock.Close())
}
