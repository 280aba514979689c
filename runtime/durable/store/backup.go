package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/topogen/topogen/runtime/internal/regular"
)

// ErrCommitWaits is the cause for which a backup ends early: a commit cannot go on before the
// backup has ended, because the file has outgrown the memory to which it is mapped. Another
// backup can begin at once.
var ErrCommitWaits = errors.New("a commit had to wait for the backup, so the backup has ended: try again")

// errFullMeanwhile is the cause for which a backup of a full store ends: the pages that commits free
// cannot be used again before the backup has ended.
var errFullMeanwhile = errors.New("the store has no space left, and commits cannot use free pages before the backup has ended, so the backup has ended: give the store more space")

// commitInterval is the time between two looks of a backup whether a commit waits for it.
const commitInterval = 100 * time.Millisecond

// commitWaitMax is a second, so that a busy computer does not look like a commit that waits: an
// attempt to read that takes longer waits for such a commit.
const commitWaitMax = time.Second

// A Sink receives a backup. Begin is called once, with the length of the backup. Its context
// ends when the backup must end early; a Write that blocks must return then.
type Sink interface {
	io.Writer
	Begin(ctx context.Context, bytes int64) error
}

// Backup writes the store as it is now to a sink, in the format of a store's file. It contains
// all commits for which Update has returned. Updates and views go on. Until the backup ends, no
// page that they free is used again, and the file grows by what they write. So the sink should
// be fast. A backup for which a commit has to wait ends with an error that matches
// [ErrCommitWaits]. A backup also ends if a transaction is refused for lack of space.
func (d *Disk) Backup(ctx context.Context, to Sink) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return ErrClosed
	}
	if failure := d.failed.Load(); failure != nil {
		return *failure
	}
	return d.guard(func() error {
		tx, err := d.db.Begin(false)
		if err != nil {
			return err
		}
		ctx, end := context.WithCancelCause(ctx)
		stop := d.watchCommits(end)
		err = write(ctx, tx, to)
		_ = tx.Rollback() // nothing was written; a commit that waits goes on
		stop()
		end(nil)
		return err
	})
}

// watchCommits ends a backup when a commit waits for it. While a commit waits to map the file
// again, no view can begin, and that is how it is noticed.
func (d *Disk) watchCommits(end context.CancelCauseFunc) (stop func()) {
	var group sync.WaitGroup
	ended, fulls := make(chan struct{}), d.fulls.Load()
	group.Go(func() {
		for {
			if d.fulls.Load() != fulls {
				end(errFullMeanwhile)
			}
			late := time.AfterFunc(d.commitWait, func() { end(ErrCommitWaits) })
			_ = d.guard(func() error { return d.db.View(func(*bbolt.Tx) error { return nil }) }) // the backup itself reports errors
			late.Stop()
			select {
			case <-time.After(commitInterval):
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		group.Wait()
	}
}

// Backup is [Disk.Backup] for a store that is only read. No commit waits for it.
func (r *ReadOnly) Backup(ctx context.Context, to Sink) error {
	return r.transact(func(tx *bbolt.Tx) error {
		return r.disk.guard(func() error { return write(ctx, tx, to) })
	})
}

// write writes what a transaction reads.
func write(ctx context.Context, tx *bbolt.Tx, to Sink) error {
	err := to.Begin(ctx, tx.Size())
	if err == nil {
		_, err = tx.WriteTo(&metaOrder{to: to, ctx: ctx, newest: uint64(tx.ID())})
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return fmt.Errorf("store: the backup is incomplete: %w", cause)
	}
	if err != nil {
		return fmt.Errorf("store: the backup is incomplete: %w", err)
	}
	return nil
}

// metaOrder puts the meta pages of a backup in their places. bbolt writes the newest one first.
// But the meta page of a commit with an odd number belongs to page 1, where the next commit but
// one overwrites it. A verifier refuses other orders.
type metaOrder struct {
	to     io.Writer
	ctx    context.Context
	newest uint64
	head   []byte // the meta pages so far
}

func (m *metaOrder) Write(b []byte) (int, error) {
	if err := context.Cause(m.ctx); err != nil {
		return 0, err
	}
	const both = 2 * pageBytes
	if len(m.head) == both {
		return m.to.Write(b)
	}
	if len(b) > both-len(m.head) {
		return 0, fmt.Errorf("bbolt has written %d bytes in place of the rest of its meta pages", len(b))
	}
	if m.head = append(m.head, b...); len(m.head) < both {
		return len(b), nil
	}
	first, second := m.head[:pageBytes:pageBytes], m.head[pageBytes:]
	if m.newest%2 == 1 {
		first, second = second, first
	}
	for number, page := range [][]byte{first, second} {
		order.PutUint64(page, uint64(number)) // the number is not part of the checksum of a meta page
		if _, err := m.to.Write(page); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// VerifyFile reads a backup from the disk completely and reports damage, as [Verify] does for the
// file of a store.
func VerifyFile(path string) (Report, error) {
	file, size, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = file.Close() }() // it was only read
	_ = syncFile(file)                  // some systems do not sync files that are open for reading
	_ = dropFile(file)                  // pages that were not synced stay in memory
	return verify(path, readerOf(file), size)
}

// ErrExists is matched if a backup cannot be restored because there is a store.
var ErrExists = errors.New("there is a store")

// Restore makes a backup the store in a directory. It verifies what it has written. A directory
// that has a store is refused, unless aside is set: then the file of that store gets the name
// that Restore returns. A process that is killed leaves either no store, or the old one, or the
// whole new one.
func Restore(backup, dir string, aside bool) (old string, report Report, err error) {
	if report, err = VerifyFile(backup); err == nil && len(report.Damage) > 0 {
		err = report.Damage[0]
	}
	if err != nil {
		return "", report, err
	}
	from, _, err := openRegular(backup, os.O_RDONLY)
	if err != nil {
		return "", report, err
	}
	defer func() { _ = from.Close() }() // it was only read
	path, temporary := filepath.Join(dir, fileName), filepath.Join(dir, newFileName)
	if filepath.Clean(backup) == temporary {
		return "", report, fmt.Errorf("store: %s is the name of a file that is being written: rename the backup", temporary)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return "", report, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if _, err := os.Lstat(path); err == nil && !aside {
		return "", report, fmt.Errorf("store: %w in %s", ErrExists, dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", report, fmt.Errorf("store: %w", err)
	}
	if report, err = copyFile(from, temporary); err == nil {
		old, err = replace(temporary, path)
	}
	if err == nil {
		lock.trust() // the store is a new file, which was read from the disk
	}
	if err != nil {
		_ = os.Remove(temporary) // the first error counts, and the next attempt overwrites it
	}
	return old, report, err
}

// copyFile copies a backup, syncs the copy and verifies it.
func copyFile(from io.Reader, to string) (Report, error) {
	file, err := regular.CreateNew(to)
	if err != nil {
		return Report{}, fmt.Errorf("store: %w", err)
	}
	_, err = io.Copy(file, from)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return Report{}, fmt.Errorf("store: %w", err)
	}
	report, err := VerifyFile(to)
	if err == nil && len(report.Damage) > 0 {
		err = report.Damage[0]
	}
	return report, err
}

// oldInfix is between the name of the file of a store and the time at which [Restore] replaced it.
const oldInfix = ".old-"

// removeSecondName removes the second name that an interrupted [Restore] has given to the file of
// a store. A file that is written must have one name.
func removeSecondName(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), filepath.Base(path)+oldInfix+"*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if other, err := os.Lstat(name); err == nil && os.SameFile(info, other) {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace gives a file the name of the store. The file of a store that is there keeps a second
// name, which replace returns.
func replace(temporary, path string) (old string, err error) {
	if _, err := os.Lstat(path); err == nil {
		old = path + oldInfix + time.Now().UTC().Format("20060102T150405Z")
		if err := os.Link(path, old); err != nil { // before the rename, so that the folder always has a store
			return "", fmt.Errorf("store: cannot keep the old file: %w", err)
		}
	}
	if err := os.Rename(temporary, path); err != nil {
		return old, fmt.Errorf("store: %w", err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return old, fmt.Errorf("store: cannot make the name of the store durable: %w", err)
	}
	return old, nil
}
