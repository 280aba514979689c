package raft_test

import (
	"encoding/binary"
	"log/slog"
	"testing"

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

// TestAFrozenStateIsWrittenAside: while it is written, updates are applied, and the
// snapshot holds none of them.
func TestAFrozenStateIsWrittenAside(t *testing.T) {
	writes, goOn := make(chan struct{}), make(chan struct{})
	holds := false
	d := fsm.Definition[cold, heat, struct{}]{
		Update: fsm.NoResult((*heat).Update),
		StateCodec: fsm.Codec[cold]{
			Append: func(b []byte, c *cold) ([]byte, error) {
				if c.frozen && holds {
					close(writes)
					<-goOn
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
	dir := t.TempDir()
	start := func() *raft.Machine[cold, heat, struct{}] {
		m, err := raft.New(raft.Config{Dir: dir, Topology: "test", Group: "cold", Logger: slog.New(slog.DiscardHandler)}, d)
		if err == nil {
			err = m.Start(t.Context(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	propose := func(m *raft.Machine[cold, heat, struct{}], n int) {
		t.Helper()
		for range n {
			if _, err := m.Propose(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	m := start()
	propose(m, 10)
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
	propose(m, 10)
	close(goOn)
	if at := <-taken; at != applied {
		t.Errorf("the snapshot is at %d, want %d", at, applied)
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
