package store

import (
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/durable/core"
)

// Errors when a store is opened.
var (
	// ErrInUse is matched if another process, or another Store of this process, has the
	// store open. The message names the process if it is known.
	ErrInUse = errors.New("in use")
	// ErrNotAStore is matched if the file was not written by this package.
	ErrNotAStore = errors.New("not a store of durable promises")
	// ErrFormat is matched if the file has a format that this version does not know.
	ErrFormat = errors.New("the format is not supported")
)

// Errors of transactions.
var (
	// ErrFull is matched if the disk, a quota or MaxBytes leaves no space. Nothing of the
	// transaction was kept. The store can be used again at once: views work, and updates
	// work when there is space again.
	ErrFull = errors.New("no space left for the store")
	// ErrFailed is matched after a write or a sync failed in a way that leaves the content
	// of the disk unknown, and after damage was found. All calls fail until the store is
	// opened again. A sync is never repeated, because a second sync can succeed without
	// having written the data of the first one.
	ErrFailed = errors.New("the store has failed and must be opened again")
	// ErrClosed is returned by calls on a closed store.
	ErrClosed = errors.New("store: closed")
	// ErrReadOnly is the error of a transaction that wrote in a View.
	ErrReadOnly = errors.New("store: a view cannot write")
)

// A DamageError is a part of a file that is not as it was written.
type DamageError struct {
	Path   string
	Page   int64      // the page of 4096 bytes, -1 if it is unknown
	Table  core.Table // with Key
	Key    []byte     // nil if the damage does not concern a record
	Reason string
}

func (e *DamageError) Error() string {
	text := "store: " + e.Path + " is damaged"
	if e.Page >= 0 {
		text += fmt.Sprintf(" in page %d (offset %d)", e.Page, e.Page*pageBytes)
	}
	if e.Key != nil {
		text += fmt.Sprintf(", %v, key %q", e.Table, shorten(e.Key))
	}
	return text + ": " + e.Reason
}

// keyBytesShown limits a key in a message.
const keyBytesShown = 100

func shorten(key []byte) []byte { return key[:min(len(key), keyBytesShown)] }
