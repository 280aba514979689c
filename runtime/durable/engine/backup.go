package engine

import (
	"context"
	"errors"

	"github.com/topogen/topogen/runtime/durable/store"
)

// Errors of [Engine.Backup].
var (
	// ErrNoBackup says that the store cannot be backed up: it is in memory, or on the nodes of
	// a group.
	ErrNoBackup = errors.New("the store is not a file of this server")
	// ErrBackupRuns says that another backup has not ended yet. Each keeps the store from using
	// free space again.
	ErrBackupRuns = errors.New("another backup is being made: wait for its end")
)

// Backup writes the store to a sink, as [store.Disk.Backup] does. It contains all operations
// that were answered before. One backup can be made at a time.
func (e *Engine) Backup(ctx context.Context, to store.Sink) error {
	s, ok := e.config.Store.(interface {
		Backup(context.Context, store.Sink) error
	})
	if !ok {
		return ErrNoBackup
	}
	if e.backsUp.Swap(true) {
		return ErrBackupRuns
	}
	defer e.backsUp.Store(false)
	return s.Backup(ctx, to)
}
