package raft_test

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

// cold is a state that can be frozen.
type cold struct {
	total  int64
	frozen bool
}

func (c *cold) Freeze() *cold { return &cold{c.total, true} }

type heat int64

func (h *heat) Update(c *cold) error { c.total += int64(*h); return nil }

// coldDefinition returns the definition of a cold state. It calls frozen when a frozen state is
// encoded.
func coldDefinition(frozen func()) fsm.Definition[cold, heat, struct{}] {
	return fsm.Definition[cold, heat, struct{}]{
		Update: fsm.NoResult((*heat).Update),
		StateCodec: fsm.Codec[cold]{
			Append: func(b []byte, c *cold) ([]byte, error) {
				if c.frozen {
					frozen()
				}
				return binary.AppendVarint(b, c.total), nil
			},
			Consume: func(b []byte, c *cold) error { c.total, _ = binary.Varint(b); return nil },
		},
		UpdateCodec: fsm.Codec[heat]{
			Append:  func(b []byte, h *heat) ([]byte, error) { return binary.AppendVarint(b, int64(*h)), nil },
			Consume: func(b []byte, h *heat) error { v, _ := binary.Varint(b); *h = heat(v); return nil },
		},
	}
}

// startCold starts a state machine with its log on a disk.
func startCold(t *testing.T, disk raft.Disk, d fsm.Definition[cold, heat, struct{}]) *raft.Machine[cold, heat, struct{}] {
	t.Helper()
	m, err := raft.New(raft.Config{Disk: disk, Topology: "test", Group: "cold", Logger: slog.New(slog.DiscardHandler)}, d)
	if err == nil {
		err = m.Start(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// applyUpdates proposes n updates.
func applyUpdates(t *testing.T, m *raft.Machine[cold, heat, struct{}], n int) {
	t.Helper()
	for range n {
		if _, err := m.Propose(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAFrozenStateIsWrittenAside: updates are applied while a frozen state is written, and the
// snapshot does not include them.
func TestAFrozenStateIsWrittenAside(t *testing.T) {
	writes, goOn := make(chan struct{}), make(chan struct{})
	holds := false
	d := coldDefinition(func() {
		if holds {
			close(writes)
			<-goOn
		}
	})
	disk := newMemoryDisk(1)
	start := func() *raft.Machine[cold, heat, struct{}] { return startCold(t, disk, d) }
	m := start()
	applyUpdates(t, m, 10)
	applied := m.Status().Applied
	holds = true
	taken := make(chan uint64)
	go func() {
		at, err := m.Snapshot(t.Context())
		if err != nil {
			t.Error(err)
		}
		taken <- at
	}()
	<-writes
	applyUpdates(t, m, 10)
	close(goOn)
	if at := <-taken; at != applied {
		t.Errorf("the snapshot must be at entry %d, got %d", applied, at)
	}
	holds = false
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = start()
	if err := m.Read(t.Context(), func(c *cold) {
		if c.total != 20 {
			t.Errorf("after a restart the total is %d, want 20", c.total)
		}
	}); err != nil {
		t.Error(err)
	}
}

// TestABackupDuringASnapshot: a backup includes the updates that were acknowledged before it, even
// if a snapshot without them is being written.
func TestABackupDuringASnapshot(t *testing.T) {
	writes, goOn := make(chan struct{}), make(chan struct{})
	var holds atomic.Bool
	d := coldDefinition(func() {
		if holds.CompareAndSwap(true, false) {
			close(writes)
			<-goOn
		}
	})
	m := startCold(t, newMemoryDisk(1), d)
	holds.Store(true)
	applyUpdates(t, m, 10)
	first := make(chan error, 1)
	go func() {
		_, err := m.Snapshot(t.Context())
		first <- err
	}()
	<-writes
	applyUpdates(t, m, 10)
	applied := m.Status().Applied
	path := filepath.Join(memdir.Quick(t), "backup")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() { second <- m.Backup(t.Context(), file) }()
	for raft.SnapshotWaiters(m) < 2 { // both wait
		runtime.Gosched()
	}
	close(goOn)
	if err := errors.Join(<-first, <-second, file.Close()); err != nil {
		t.Fatal(err)
	}
	i, err := raft.OpenBackup(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil || i.Last < applied {
		t.Errorf("the backup must include the acknowledged entry %d, but ends at %d: %v", applied, i.Last, err)
	}
}

// TestAFrozenStateEndsItsGoroutine: if the codec ends its goroutine, the state machine stops with an
// error that says so, and callers that wait for the snapshot get an error.
func TestAFrozenStateEndsItsGoroutine(t *testing.T) {
	var ends atomic.Bool
	m := startCold(t, newMemoryDisk(1), coldDefinition(func() {
		if ends.Load() {
			runtime.Goexit()
		}
	}))
	applyUpdates(t, m, 1)
	ends.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := m.Snapshot(ctx); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Snapshot: %v", err)
	}
	if err := m.Close(); err == nil || !strings.Contains(err.Error(), "ended its goroutine") {
		t.Errorf("Close: %v", err)
	}
}
