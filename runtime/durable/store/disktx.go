package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"runtime/debug"
	"syscall"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/topogen/topogen/runtime/durable/core"
)

// fillPercent is how full bbolt leaves the pages that it splits.
const fillPercent = 0.7

// diskTx is a transaction of a Disk.
type diskTx struct {
	disk    *Disk
	tx      *bbolt.Tx
	buckets [Tables]*bbolt.Bucket
	writes  bool
	changed bool
	totals  totals
	err     error
	broken  bool // err means that the file cannot be read, or is damaged
}

func (x *diskTx) Err() error    { return x.err }
func (x *diskTx) Changed() bool { return x.changed }

func (x *diskTx) fail(err error) {
	if x.err == nil {
		x.err = err
	}
}

// caught turns a panic of bbolt, or a fault of the memory to which the file is mapped,
// into the error of the transaction. It is deferred around each call of bbolt, and not
// around the code of the caller, whose panics are not damage.
func (x *diskTx) caught() {
	if r := recover(); r != nil {
		x.broken = true
		x.fail(panicked(x.disk.path, r))
	}
}

func (x *diskTx) damage(t core.Table, key []byte, reason string) {
	x.broken = true
	x.fail(&DamageError{Path: x.disk.path, Page: -1, Table: t, Key: bytes.Clone(key), Reason: reason})
}

// bucket returns the bucket of a table, or nil if the table is empty.
func (x *diskTx) bucket(t core.Table) *bbolt.Bucket {
	b := x.buckets[t]
	if b == nil {
		if b = x.tx.Bucket(bucketNames[t]); b != nil {
			b.FillPercent = fillPercent
			x.buckets[t] = b
		}
	}
	return b
}

func (x *diskTx) Get(t core.Table, key []byte) []byte {
	if err := checkKey(t, key); err != nil {
		x.fail(err)
	}
	if x.err != nil {
		return nil
	}
	value, _, _ := x.get(t, key)
	return value
}

// get returns the value of a key and its checksum.
func (x *diskTx) get(t core.Table, key []byte) (value []byte, s uint64, ok bool) {
	defer x.caught()
	b := x.bucket(t)
	if b == nil {
		return nil, 0, false
	}
	raw := b.Get(key)
	if raw == nil {
		return nil, 0, false
	}
	value, s, err := stored(t, key, raw)
	if err != nil {
		x.damage(t, key, err.Error())
		return nil, 0, false
	}
	return value, s, true
}

func (x *diskTx) Put(t core.Table, key, value []byte) {
	if !x.canWrite(checkRecord(t, key, value)) {
		return
	}
	_, old, exists := x.get(t, key)
	if x.err != nil {
		return
	}
	defer x.caught()
	b := x.bucket(t)
	if b == nil {
		var err error
		if b, err = x.tx.CreateBucket(bucketNames[t]); err != nil {
			x.fail(fmt.Errorf("store: %w", err))
			return
		}
		b.FillPercent = fillPercent
		x.buckets[t] = b
	}
	raw, s := x.disk.arena.stored(t, key, value)
	if err := b.Put(key, raw); err != nil {
		x.fail(fmt.Errorf("store: %w", err))
		return
	}
	x.changed = true
	x.totals[t].add(s)
	if exists {
		x.totals[t].remove(old)
	}
}

func (x *diskTx) Delete(t core.Table, key []byte) {
	if !x.canWrite(checkKey(t, key)) {
		return
	}
	_, old, exists := x.get(t, key)
	if x.err != nil || !exists {
		return
	}
	defer x.caught()
	if err := x.bucket(t).Delete(key); err != nil {
		x.fail(fmt.Errorf("store: %w", err))
		return
	}
	x.changed = true
	x.totals[t].remove(old)
}

// canWrite reports whether a write is allowed, and keeps the error if it is not.
func (x *diskTx) canWrite(err error) bool {
	if !x.writes {
		err = ErrReadOnly
	}
	if err != nil {
		x.fail(err)
	}
	return x.err == nil
}

func (x *diskTx) Ascend(t core.Table, from []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		if t >= Tables {
			x.fail(checkKey(t, from))
		}
		if x.err != nil {
			return
		}
		cursor, key, value := x.seek(t, from)
		for key != nil && yield(key, value) {
			key, value = x.step(t, cursor.Next)
		}
	}
}

// seek returns a cursor at the first key at or above from.
func (x *diskTx) seek(t core.Table, from []byte) (cursor *bbolt.Cursor, key, value []byte) {
	defer x.caught()
	b := x.bucket(t)
	if b == nil {
		return nil, nil, nil
	}
	cursor = b.Cursor()
	key, value = x.step(t, func() ([]byte, []byte) { return cursor.Seek(from) })
	return cursor, key, value
}

// step returns the record to which a cursor moves, or a nil key after the last one.
func (x *diskTx) step(t core.Table, move func() ([]byte, []byte)) (key, value []byte) {
	defer x.caught()
	k, raw := move()
	if k == nil {
		return nil, nil
	}
	v, _, err := stored(t, k, raw)
	if err != nil {
		x.damage(t, k, err.Error())
		return nil, nil
	}
	return k, v
}

// arena holds the values of a transaction, which bbolt does not copy.
type arena struct{ blocks []byte }

// arenaBytes is the size of a block of an arena. A larger value gets its own block.
const arenaBytes = 256 << 10

// stored returns a value with its checksum.
func (a *arena) stored(t core.Table, key, value []byte) ([]byte, uint64) {
	if n := len(value) + sumBytes; cap(a.blocks)-len(a.blocks) < n {
		a.blocks = make([]byte, 0, max(n, arenaBytes))
	}
	from := len(a.blocks)
	var s uint64
	a.blocks, s = appendStored(a.blocks, t, key, value)
	return a.blocks[from:len(a.blocks):len(a.blocks)], s
}

// guard calls f, and turns a panic and a fault into an error.
func (d *Disk) guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = panicked(d.path, r)
		}
	}()
	return f()
}

// panicked returns the error for a panic of bbolt. A fault of the memory to which the file is
// mapped is an error of the disk.
func panicked(path string, r any) error {
	if _, ok := r.(interface{ Addr() uintptr }); ok {
		return fmt.Errorf("store: %s cannot be read: the disk has an error, or the file was shortened", path)
	}
	return &DamageError{Path: path, Page: -1, Reason: fmt.Sprintf("it cannot be read: %v", r)}
}

// View implements [Store].
func (d *Disk) View(f func(Tx) error) error { return d.transact(false, f) }

// Update implements [Store]. A commit of an earlier process that was interrupted, or a commit that
// was refused for lack of space, can have left a root page with its number. If the next commit had
// the same number and the disk lost its root page, nothing would tell the two from each other.
// So the number is first given to a commit without changes.
func (d *Disk) Update(f func(Tx) error) error {
	d.writer.Lock()
	defer d.writer.Unlock()
	if d.reused {
		if err := d.transact(true, func(tx Tx) error { tx.(*diskTx).changed = true; return nil }); err != nil {
			return err
		}
	}
	return d.transact(true, f)
}

// transact runs a transaction.
func (d *Disk) transact(writes bool, f func(Tx) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return ErrClosed
	}
	if failure := d.failed.Load(); failure != nil {
		return *failure
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	x := &diskTx{disk: d, writes: writes}
	err := d.guard(func() (err error) {
		x.tx, err = d.db.Begin(writes)
		return err
	})
	if err != nil {
		return d.fail(err)
	}
	open := true
	defer func() {
		if open { // an error, or f has panicked
			d.rollback(x)
		}
	}()
	number := uint64(x.tx.ID())
	if writes {
		x.totals = d.totals
		d.arena.blocks = d.arena.blocks[:0]
	}
	if err := run(x, f); err != nil {
		if x.broken {
			return d.fail(x.err)
		}
		return err
	}
	open = false
	if !x.changed {
		d.rollback(x)
		if writes {
			return nil // it saw only synced commits
		}
		return d.await(number)
	}
	return d.commit(x, number)
}

// rollback ends a transaction. If that fails, bbolt may hold its locks forever.
func (d *Disk) rollback(x *diskTx) {
	if err := d.guard(x.tx.Rollback); err != nil && !errors.Is(err, bbolterrors.ErrTxClosed) {
		_ = d.fail(err) // the transaction reports its own error
	}
}

// fail notes that the store cannot be used any more, and returns the error of all later
// calls.
func (d *Disk) fail(err error) error {
	err = fmt.Errorf("store: %s: %w: %w", d.path, ErrFailed, err)
	if d.failed.CompareAndSwap(nil, &err) {
		d.synced.set(0) // wakes the views that wait
		return err
	}
	return *d.failed.Load()
}

// commit writes a transaction to the disk.
func (d *Disk) commit(x *diskTx, number uint64) error {
	err := d.guard(func() error {
		b := x.tx.Bucket([]byte(metaBucketName))
		if err := b.Put([]byte(totalsKey), x.totals.encode(number)); err != nil {
			return err
		}
		if f := d.format; f.Version < formatVersion {
			f.Version = formatVersion
			if err := b.Put([]byte(formatKey), f.encode()); err != nil {
				return err
			}
		}
		return x.tx.Commit()
	})
	if err == nil {
		if d.removed() {
			return d.fail(errors.New("the file was removed or replaced while it was open: its records are lost when this process ends"))
		}
		d.totals, d.format.Version = x.totals, formatVersion
		d.listed, d.reused = false, false
		d.synced.set(number)
		return nil
	}
	d.rollback(x) // after a panic; otherwise bbolt has done it
	if full(err) && d.unchanged(number) {
		d.reused = true
		d.fulls.Add(1)
		return fmt.Errorf("%w: %s: %w", ErrFull, d.path, err)
	}
	d.lock.suspect()
	return d.fail(err)
}

// removed reports whether the path leads to no file, or to another one. Commits would then
// succeed, but no process could open them.
func (d *Disk) removed() bool {
	at, err := os.Stat(d.path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	own, err := d.file.Stat()
	return err == nil && !os.SameFile(at, own)
}

// full reports whether a write was refused for lack of space. The error of a sync is not
// an fs.PathError, and after it the content of the disk is unknown even if the reason is
// lack of space.
func full(err error) bool {
	if errors.Is(err, bbolterrors.ErrMaxSizeReached) {
		return true
	}
	e, ok := errors.AsType[*fs.PathError](err)
	return ok && e.Op == "write" && (errors.Is(e, syscall.ENOSPC) || errors.Is(e, syscall.EDQUOT) || errors.Is(e, syscall.EFBIG))
}

// unchanged reports whether the meta page of a commit was not written yet: both meta
// pages are valid and of the commits before.
func (d *Disk) unchanged(number uint64) bool {
	m, err := readMeta(d.path, d.file, d.Bytes())
	return err == nil && m.tx < number
}
