package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// backupRateMin is the least number of bytes per second that the reader of a backup must take on
// average. While a backup is sent, the file of the store grows by all that is written, so a slow
// reader must not take days.
const backupRateMin = 256 << 10

// errClosing ends a backup when the server is closed.
var errClosing = errors.New("the server is shutting down")

// serveBackup sends the file of the store as it is now. A response that is shorter than its
// Content-Length is not a backup.
func (s *Server) serveBackup(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET")
		refuse(w, http.StatusMethodNotAllowed, "fetch a backup with GET")
		return
	}
	b, ok := s.backend.(interface {
		Backup(context.Context, store.Sink) error
	})
	if !ok {
		refuse(w, http.StatusNotImplemented, "this server has no backups: "+engine.ErrNoBackup.Error())
		return
	}
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	to := &backup{w: w, control: http.NewResponseController(w), stall: s.config.BackupStall}
	to.control.SetReadDeadline(time.Time{}) // the request has no body, and net/http would end the context
	go func() {
		select {
		case <-s.closing:
			end(errClosing)
		case <-ctx.Done():
		}
	}()
	err := b.Backup(ctx, to)
	switch {
	case err == nil:
		s.config.Logger.Info("durable: a backup was sent", "bytes", to.bytes, "duration", time.Since(to.begin))
	case to.begun:
		s.config.Logger.Warn("durable: a backup has ended early", "sent", to.sent, "bytes", to.bytes, "error", err)
		panic(http.ErrAbortHandler) // closes the connection
	case errors.Is(err, engine.ErrNoBackup):
		refuse(w, http.StatusNotImplemented, "this server has no backups: "+err.Error())
	case errors.Is(err, engine.ErrBackupRuns):
		refuse(w, protocol.Conflict, err.Error())
	default:
		refuse(w, protocol.Unavailable, err.Error())
	}
}

// A backup is the response that receives a backup.
type backup struct {
	w           http.ResponseWriter
	control     *http.ResponseController
	stall       time.Duration
	ctx         context.Context
	begin       time.Time
	begun       bool
	bytes, sent int64
	kept        func() bool // ends the effect of the context on the deadline
}

// Begin implements store.Sink.
func (b *backup) Begin(ctx context.Context, bytes int64) error {
	b.ctx, b.begin, b.begun, b.bytes = ctx, time.Now(), true, bytes
	b.kept = context.AfterFunc(ctx, func() { b.control.SetWriteDeadline(time.Now()) }) // wakes a Write
	h := b.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(bytes, 10))
	h.Set("Cache-Control", "no-store")
	b.w.WriteHeader(http.StatusOK)
	return nil
}

// Write sends a part, unless the reader is too slow.
func (b *backup) Write(p []byte) (int, error) {
	if err := b.control.SetWriteDeadline(b.deadline(time.Now())); err != nil {
		return 0, err
	}
	if err := context.Cause(b.ctx); err != nil { // its deadline may have been overwritten
		return 0, err
	}
	n, err := b.w.Write(p)
	if b.sent += int64(n); err == nil && b.sent == b.bytes {
		// The context ends when the backup is complete. Then neither the rest that net/http has in
		// memory nor the next request of the connection may have a deadline that is over.
		if err = b.control.Flush(); err == nil && !b.kept() {
			err = context.Cause(b.ctx)
		}
	}
	return n, err
}

// deadline returns when the reader must have taken a further part.
func (b *backup) deadline(now time.Time) time.Time {
	stalls := now.Add(b.stall)
	late := b.begin.Add(b.stall + time.Duration(float64(b.sent)/backupRateMin*float64(time.Second)))
	if late.Before(stalls) {
		return late
	}
	return stalls
}

var _ store.Sink = (*backup)(nil)
