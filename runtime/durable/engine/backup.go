package engine

import (
	"context"
	"errors"
	"sync/atomic"

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

// backups is the state of backups.
type backups struct {
	running atomic.Bool
	ctx     context.Context // ends with the engine
	end     context.CancelCauseFunc
}

// Backup writes the store to a sink, as [store.Disk.Backup] does. It contains all operations
// that were answered before. One backup can be made at a time.
func (e *Engine) Backup(ctx context.Context, to store.Sink) error {
	s, ok := e.config.Store.(interface {
		Backup(context.Context, store.Sink) error
	})
	if !ok {
		return ErrNoBackup
	}
	if e.backup.running.Swap(true) {
		return ErrBackupRuns
	}
	defer e.backup.running.Store(false)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	stop := context.AfterFunc(e.backup.ctx, func() { end(context.Cause(e.backup.ctx)) })
	defer stop()
	return s.Backup(ctx, to)
}
