package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"time"
	"unsafe"

	"github.com/cespare/xxhash/v2"
	"go.etcd.io/bbolt"
)

// WriteAt is how bbolt writes to its file.
type WriteAt func(b []byte, at int64) (int, error)

// HookWrites replaces the function with which bbolt writes.
func (d *Disk) HookWrites(wrap func(WriteAt) WriteAt) {
	field := reflect.ValueOf(d.db).Elem().FieldByName("ops").FieldByName("writeAt")
	place := (*func([]byte, int64) (int, error))(unsafe.Pointer(field.UnsafeAddr()))
	*place = wrap(*place)
}

// Syncs reports whether bbolt syncs the pages of a commit before it writes the meta page.
func (d *Disk) Syncs() bool { return !d.db.NoSync }

// File returns the file that bbolt has opened.
func (d *Disk) File() *os.File { return d.file }

// HookOpenSync replaces the sync of a file that Open has checked, until the result is
// called.
func HookOpenSync(sync func(*os.File) error) (restore func()) {
	before := syncFile
	syncFile = sync
	return func() { syncFile = before }
}

// HookDrop replaces how Open makes the system forget a file, until the result is called.
func HookDrop(drop func(*os.File) bool) (restore func()) {
	before := dropFile
	dropFile = drop
	return func() { dropFile = before }
}

// HookReads replaces how Open reads a file that it checks, until the result is called.
func HookReads(wrap func(io.ReaderAt) io.ReaderAt) (restore func()) {
	before := readerOf
	readerOf = func(f *os.File) io.ReaderAt { return wrap(f) }
	return func() { readerOf = before }
}

// Version1 changes a closed store to version 1 of the format.
func Version1(dir string) error {
	db, err := bbolt.Open(filepath.Join(dir, fileName), 0o600, &bbolt.Options{PageSize: pageBytes})
	if err != nil {
		return err
	}
	return errors.Join(db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(metaBucketName))
		f, err := decodeFormat(b.Get([]byte(formatKey)))
		f.Version = 1
		raw := b.Get([]byte(totalsKey))
		raw = raw[commitBytes : len(raw)-sumBytes]
		return errors.Join(err, b.Put([]byte(formatKey), f.encode()), b.Put([]byte(totalsKey), binary.LittleEndian.AppendUint64(bytes.Clone(raw), xxhash.Sum64(raw))))
	}), db.Close())
}

// CreateOther writes a file as a later version, or another program, would.
func CreateOther(path, kind string, version int) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageBytes})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if kind == "" {
			_, err := tx.CreateBucket([]byte("users"))
			return err
		}
		b, err := tx.CreateBucket([]byte(metaBucketName))
		if err == nil {
			err = b.Put([]byte(formatKey), format{Kind: kind, Version: version}.encode())
		}
		return err
	})
	if err != nil {
		return err
	}
	return db.Close()
}

// SetCommitWait sets after which time a commit ends the backup for which it waits.
func (d *Disk) SetCommitWait(wait time.Duration) { d.commitWait = wait }

// SetMapBytes sets how much memory is reserved for files that are opened from now on, until the
// result is called.
func SetMapBytes(n int) (restore func()) {
	before := mapBytes
	mapBytes = n
	return func() { mapBytes = before }
}
