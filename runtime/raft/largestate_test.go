package raft_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

// pile is a state of any size. An update adds blobs to it, whose content is generated from their
// numbers.
type pile struct{ blobs map[uint64][]byte }

type heap struct{ first, blobs, bytes uint64 }

func (h *heap) Update(p *pile) error {
	if p.blobs == nil {
		p.blobs = map[uint64][]byte{}
	}
	for i := h.first; i < h.first+h.blobs; i++ {
		b := make([]byte, h.bytes)
		_, _ = rand.NewChaCha8([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}).Read(b) // never fails
		p.blobs[i] = b
	}
	return nil
}

func (p *pile) sum() uint32 {
	sum := uint32(0)
	for _, i := range slices.Sorted(maps.Keys(p.blobs)) {
		sum = crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), p.blobs[i])
	}
	return sum
}

var errPile = errors.New("not a pile")

var pileCodec = fsm.Codec[pile]{
	Parts: []string{"blobs"},
	Append: func(b []byte, p *pile) ([]byte, error) {
		for _, i := range slices.Sorted(maps.Keys(p.blobs)) {
			b = binary.BigEndian.AppendUint64(b, i)
			b = binary.BigEndian.AppendUint64(b, uint64(len(p.blobs[i])))
			b = append(b, p.blobs[i]...)
		}
		return b, nil
	},
	Consume: func(b []byte, p *pile) error {
		if p.blobs == nil {
			p.blobs = map[uint64][]byte{}
		}
		for len(b) > 0 {
			if len(b) < 16 || uint64(len(b)-16) < binary.BigEndian.Uint64(b[8:]) {
				return errPile
			}
			n := binary.BigEndian.Uint64(b[8:])
			p.blobs[binary.BigEndian.Uint64(b)] = slices.Clone(b[16 : 16+n])
			b = b[16+n:]
		}
		return nil
	},
}

var heapCodec = fsm.Codec[heap]{
	Append: func(b []byte, h *heap) ([]byte, error) {
		return fmt.Append(b, h.first, " ", h.blobs, " ", h.bytes), nil
	},
	Consume: func(b []byte, h *heap) error {
		_, err := fmt.Sscan(string(b), &h.first, &h.blobs, &h.bytes)
		return err
	},
}

type pileMachine = raft.Machine[pile, heap, struct{}]

func openPile(t *testing.T, c raft.Config) *pileMachine { return openPileWith(t, c, pileCodec) }

func openPileWith(t *testing.T, c raft.Config, codec fsm.Codec[pile]) *pileMachine {
	t.Helper()
	c.Topology, c.Group, c.Logger = "test", "pile", slog.New(slog.DiscardHandler)
	m, err := raft.New(c, fsm.Definition[pile, heap, struct{}]{Update: fsm.NoResult((*heap).Update), StateCodec: codec, UpdateCodec: heapCodec})
	if err == nil {
		err = m.Start(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// TestLargeStates builds a state on one node, takes a snapshot, restarts the node from it, and adds
// another node, which receives the snapshot over gRPC. A state of 4 GiB needs 13 GiB of memory and
// 9 GiB of disk.
func TestLargeStates(t *testing.T) {
	t.Parallel()
	size, dir := speed.Pick(t, uint64(8), 20, 4096), t.TempDir() // in MiB
	timeout := speed.Pick(t, 100*time.Millisecond, 100*time.Millisecond, time.Second)
	addresses := loopback.Addresses(t, 2)
	c := raft.Config{Node: "n1", Peers: map[string]string{"n1": addresses[0]}, Dir: dir, Heartbeat: timeout / 10, ElectionTimeout: timeout}
	first := openPile(t, c)
	for i := range size / 4 {
		if _, err := first.Propose(t.Context(), heap{i * 16, 16, 256 << 10}); err != nil {
			t.Fatal(err)
		}
	}
	at, err := first.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := func(m *pileMachine) (sum uint32, blobs int) {
		if err := m.Read(t.Context(), func(p *pile) { sum, blobs = p.sum(), len(p.blobs) }); err != nil {
			t.Fatal(err)
		}
		return sum, blobs
	}
	want, blobs := sum(first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	first = openPile(t, c)
	if got, n := sum(first); got != want || n != blobs || first.Status().Snapshot < at {
		t.Fatalf("after a restart the node has %d blobs, sum %08x, and the snapshot at %d; want %d, %08x and %d", n, got, first.Status().Snapshot, blobs, want, at)
	}
	c.Node, c.Join, c.Peers = "n2", true, map[string]string{"n1": addresses[0], "n2": addresses[1]}
	second := openPile(t, c)
	if err := first.ChangeMembers(t.Context(), raft.Change{Kind: raft.AddLearner, Name: "n2", Address: addresses[1]}); err != nil {
		t.Fatal(err)
	}
	if got, n := sum(second); got != want || n != blobs {
		t.Errorf("the new node has %d blobs, sum %08x; want %d, %08x", n, got, blobs, want)
	}
	if s := second.Status(); s.Snapshot < at {
		t.Errorf("the new node must receive a snapshot at %d or later, got %d", at, s.Snapshot)
	}
}

// TestAPoisonedSnapshot: a snapshot that a new node cannot decode does not stop the node and is not
// saved in its log. The leader reports the error in its status.
func TestAPoisonedSnapshot(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		c := raft.Config{Node: "n1", Peers: named("n1")}
		first := openPile(t, v.connect(c))
		if _, err := first.Propose(t.Context(), heap{0, 3, 10}); err != nil {
			t.Fatal(err)
		}
		if _, err := first.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil { // after a restart the log does not have the entries before the snapshot
			t.Fatal(err)
		}
		first = openPile(t, v.connect(c))
		var tried atomic.Int64
		poisoned := pileCodec
		poisoned.Consume = func(b []byte, p *pile) error {
			if len(b) > 0 {
				tried.Add(1)
				return errPile
			}
			return pileCodec.Consume(b, p)
		}
		c.Node, c.Join, c.Peers = "n2", true, named("n1", "n2")
		second := openPileWith(t, v.connect(c), poisoned)
		add := raft.Change{Kind: raft.AddLearner, Name: "n2", Address: "host-n2:1"}
		err := first.ChangeMembers(t.Context(), add)
		for errors.Is(err, fsm.ErrNotLeader) { // the restarted node does not lead yet
			pause()
			err = first.ChangeMembers(t.Context(), add)
		}
		if err != nil {
			t.Fatal(err)
		}
		for tried.Load() < 2 { // the leader sends it again
			pause()
		}
		said := ""
		for ; said == ""; pause() {
			for _, m := range first.Status().Members {
				if m.Transfer != nil {
					said = m.Transfer.Error
				}
			}
		}
		if !strings.Contains(said, errPile.Error()) {
			t.Errorf("the status of the leader must contain %q, got %q", errPile, said)
		}
		if s := second.Status(); s.Role == "stopped" || s.Snapshot != 0 {
			t.Errorf("the new node is %s, with the snapshot at %d", s.Role, s.Snapshot)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		second = openPile(t, v.connect(c))
		if err := second.Read(t.Context(), func(p *pile) {
			if len(p.blobs) != 3 {
				t.Errorf("the new node has %d blobs, want 3", len(p.blobs))
			}
		}); err != nil {
			t.Error(err)
		}
	})
}
