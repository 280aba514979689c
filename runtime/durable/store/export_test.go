package store

import (
	"os"
	"reflect"
	"unsafe"

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

// HookSync replaces the sync of the file.
func (d *Disk) HookSync(wrap func(sync func() error) error) {
	d.sync = func() error { return wrap(d.db.Sync) }
}

// File returns the file that bbolt has opened.
func (d *Disk) File() *os.File { return d.file }

// HookOpenSync replaces the sync of a file that Open has checked, until the result is
// called.
func HookOpenSync(sync func(*os.File) error) (restore func()) {
	before := syncFile
	syncFile = sync
	return func() { syncFile = before }
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
