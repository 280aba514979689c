package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/topogen/topogen/runtime/internal/filelock"
	"github.com/topogen/topogen/runtime/internal/pagecache"
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
}

// mapBytes is the address space that is reserved for the file from the beginning. Until
// the file has outgrown it, a commit need not wait for views to end. It takes no memory.
var mapBytes = min(1<<30, math.MaxInt>>5) // 64 MiB in a process of 32 bits; a variable for tests

// Disk is a store in a file of bbolt.
type Disk struct {
	path   string
	lock   *dirLock
	db     *bbolt.DB
	file   *os.File // of db
	failed atomic.Pointer[error]

	mu     sync.RWMutex // held by a transaction for reading, by Close for writing
	closed bool

	writer sync.Mutex // held during an Update
	totals totals     // of the last commit
	format format
	listed bool         // the last commit has a list of free pages
	reused bool         // a commit that was not answered may have the number of the next one
	fulls  atomic.Int64 // transactions that were refused for lack of space
	arena  arena
	synced synced

	commitWait time.Duration // commitWaitMax, or less in tests
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
	d := &Disk{path: filepath.Join(dir, fileName), lock: lock, commitWait: commitWaitMax}
	if err := d.open(dir, o); err != nil {
		_ = lock.Close() // the first error counts
		return nil, err
	}
	return d, nil
}

// open opens the store in a locked directory.
func (d *Disk) open(dir string, o Options) error {
	if err := os.Remove(filepath.Join(dir, newFileName)); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that was killed
		return fmt.Errorf("store: %w", err)
	}
	if _, err := os.Lstat(d.path); errors.Is(err, fs.ErrNotExist) {
		if err := create(dir); err != nil {
			return fmt.Errorf("store: cannot create a store in %s: %w", dir, err)
		}
	}
	if err := removeSecondName(d.path); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := syncDir(dir); err != nil { // the process that created the file may have been killed before this
		return fmt.Errorf("store: cannot make the name of the store durable: %w", err)
	}
	if err := d.check(o); err != nil {
		return err
	}
	d.lock.trust()
	return d.start(o)
}

// check verifies what the disk has of a file. The file is synced first: if the process was
// killed before the sync of its last commit, the system may still have pages of this commit
// in memory alone, and the store must not continue from a commit that can still be lost. Then
// the system drops the file from its memory, because after a write to the disk has failed, the
// memory has pages that will never be written.
func (d *Disk) check(o Options) error {
	file, size, err := openOwn(d.path, os.O_RDWR)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it is synced
	if err := syncFile(file); err != nil {
		d.lock.suspect()
		return fmt.Errorf("store: cannot make the last commit durable: %w", err)
	}
	if err := forget(file, d.lock.File, d.lock.suspected); err != nil {
		return err
	}
	reader := readerOf(file)
	m, err := readMeta(d.path, reader, size)
	if err != nil {
		return err
	}
	d.listed = m.listed()
	if o.TrustFile && d.listed && !d.lock.suspected {
		return nil
	}
	report, err := verify(d.path, reader, size)
	if err == nil && len(report.Damage) > 0 {
		err = report.Damage[0]
	}
	return err
}

// forget makes the system forget a synced file, so that the next read returns what the disk has.
// After a failed sync it must succeed.
func forget(file, lock *os.File, suspected bool) error {
	if forgotten := dropFile(file); suspected && !forgotten {
		return fmt.Errorf("store: a sync of %s has failed, and the system still has the file in its memory, which can differ from the disk. If another process has opened the file, end it. Otherwise restart the computer and remove %s. Then open the store again", file.Name(), lock.Name())
	}
	return nil
}

// Variables for tests.
var (
	syncFile = (*os.File).Sync
	dropFile = pagecache.Drop
	readerOf = func(file *os.File) io.ReaderAt { return file }
)

// openOwn opens the file of a store.
func openOwn(path string, flag int) (*os.File, int64, error) {
	file, info, err := regular.OpenOwn(path, flag)
	if errors.Is(err, regular.ErrNotRegular) {
		return nil, 0, fmt.Errorf("store: %w: %w", ErrNotAStore, err)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("store: %w", err)
	}
	return file, info.Size(), nil
}

// openRegular opens a file that must be a regular one. The user has chosen its path, so it may be
// a link.
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
	d.synced.changed.L = &d.synced.mu
	d.reused = true
	err = d.guard(func() error {
		return d.db.View(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(metaBucketName))
			if b == nil {
				return fmt.Errorf("store: %s is a file of bbolt, but %w", d.path, ErrNotAStore)
			}
			if d.format, err = decodeFormat(b.Get([]byte(formatKey))); err != nil {
				return fmt.Errorf("store: %s: %w", d.path, err)
			}
			d.synced.commit = uint64(tx.ID())
			var commit uint64
			if d.totals, commit, err = decodeTotals(b.Get([]byte(totalsKey))); err != nil {
				return fmt.Errorf("store: %s: %w", d.path, err)
			}
			return d.checkNumber(commit)
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
		MaxSize:         int(min(o.MaxBytes, math.MaxInt)),
		PageSize:        pageBytes,
		NoStatistics:    true,
		OpenFile: func(name string, flag int, _ os.FileMode) (*os.File, error) {
			f, _, err := regular.OpenOwn(name, flag)
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

// checkNumber compares the numbers of a commit in a file that was not verified.
func (d *Disk) checkNumber(commit uint64) error {
	m := meta{tx: d.synced.commit, freelist: noFreelist}
	if d.listed {
		m.freelist = 0
	}
	if reason := m.mismatch(d.format, commit); reason != "" {
		return &DamageError{Path: d.path, Page: -1, Reason: reason}
	}
	return nil
}

// create makes an empty store, whose name is not durable yet. The file gets its name when it is complete, so that a
// crash does not leave a file that is not a store.
func create(dir string) error {
	path := filepath.Join(dir, newFileName)
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
		return errors.Join(b.Put([]byte(formatKey), f.encode()), b.Put([]byte(totalsKey), new(totals).encode(uint64(tx.ID()))))
	})
	if err == nil {
		err = writeFreelist(db) // so that both meta pages lead to a store
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	return os.Rename(path, filepath.Join(dir, fileName))
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
	lock, err := shareDir(dir)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = lock.Close() }() // nothing was written
	return lock.verify()
}

// ID returns the identity of the store, which was drawn when it was created.
func (d *Disk) ID() string { return d.format.ID }

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

// lastCommit makes a commit without changes, unless the last one is such a commit. It writes the
// list of free pages, so that the next start need not search for them. The last two commits are
// then the same, so a meta page that the disk has lost takes no records with it.
func (d *Disk) lastCommit() error {
	if d.listed {
		return nil
	}
	err := d.guard(func() error { return writeFreelist(d.db) })
	if full(err) && d.unchanged(d.synced.commit+1) {
		return nil // the file is as valid as it was
	}
	if err != nil {
		d.lock.suspect()
	}
	return err
}

// writeFreelist makes a commit with the list of free pages, and without changes.
func writeFreelist(db *bbolt.DB) error {
	db.NoFreelistSync = false
	return db.Update(func(*bbolt.Tx) error { return nil })
}
