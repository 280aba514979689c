package engine_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/store"
)

// stuck is a sink that takes nothing until its backup must end.
type stuck struct {
	begun chan struct{}
	ctx   context.Context
}

func (s *stuck) Begin(ctx context.Context, _ int64) error {
	s.ctx = ctx
	close(s.begun)
	return nil
}

func (s *stuck) Write([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, context.Cause(s.ctx)
}

// taking is a sink in memory.
type taking struct{ bytes.Buffer }

func (*taking) Begin(context.Context, int64) error { return nil }

// TestBackup: one backup is made at a time, and none holds up the end of an engine.
func TestBackup(t *testing.T) {
	disk, err := store.Open(memdir.Quick(t), store.Options{})
	must(t, err)
	e := start(t, engine.Config{Store: disk})
	do(t, e, create("p"), 200)
	var b taking
	must(t, e.Backup(t.Context(), &b))
	if b.Len() == 0 {
		t.Error("the backup is empty")
	}
	s := &stuck{begun: make(chan struct{})}
	ended := make(chan error)
	go func() { ended <- e.Backup(t.Context(), s) }()
	<-s.begun
	if err := e.Backup(t.Context(), &b); !errors.Is(err, engine.ErrBackupRuns) {
		t.Error(err)
	}
	do(t, e, create("q"), 200)
	closed := make(chan error)
	go func() { closed <- e.Close(context.Background()) }()
	if err := <-ended; !errors.Is(err, engine.ErrClosed) {
		t.Error(err)
	}
	must(t, <-closed)
	if err := e.Backup(t.Context(), &b); err == nil {
		t.Error("a closed engine has written a backup")
	}
	if err := start(t, engine.Config{}).Backup(t.Context(), &b); !errors.Is(err, engine.ErrNoBackup) {
		t.Error(err)
	}
}
