package raft_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// sum counts the bytes of updates of any size.
type sum struct{ bytes uint64 }

type blob struct{ data []byte }

func (b *blob) Update(s *sum) error { s.bytes += uint64(len(b.data)); return nil }

var sumCodec = fsm.Codec[sum]{
	Append: func(b []byte, s *sum) ([]byte, error) { return fmt.Append(b, s.bytes), nil },
	Consume: func(b []byte, s *sum) error {
		_, err := fmt.Sscan(string(b), &s.bytes)
		return err
	},
}

var blobCodec = fsm.Codec[blob]{
	Append:  func(b []byte, v *blob) ([]byte, error) { return append(b, v.data...), nil },
	Consume: func(b []byte, v *blob) error { v.data = bytes.Clone(b); return nil },
}

// sized is a group whose updates can have any size.
type sized struct {
	machines []*raft.Machine[sum, blob, struct{}]
	links    []*grpc.Transport
	want     uint64 // bytes of all updates
	before   uint64 // messages that were dropped so far
}

// newSized starts three nodes and waits until all are connected. queueBytes limits the queues of
// their transports; 0: the default.
func newSized(t *testing.T, queueBytes int) *sized {
	t.Helper()
	names := []string{"n1", "n2", "n3"}
	peers := map[string]string{}
	for i, address := range freeAddresses(t, len(names)) {
		peers[names[i]] = address
	}
	quiet := slog.New(slog.DiscardHandler)
	g := new(sized)
	for i, name := range names {
		link, err := grpc.Listen(grpc.Config{Node: name, Topology: "test", Version: "1", Address: peers[name], Peers: peers, Logger: quiet, QueueBytes: queueBytes})
		if err != nil {
			t.Fatal(err)
		}
		m, err := raft.New(raft.Config{
			Topology: "test", Group: "sum", Node: name, Peers: peers, Dir: t.TempDir(), Transport: link, Disk: newMemoryDisk(uint64(i)),
			Forward: true, Logger: quiet, Heartbeat: 30 * time.Millisecond, ElectionTimeout: 300 * time.Millisecond,
		}, fsm.Definition[sum, blob, struct{}]{Update: fsm.NoResult((*blob).Update), StateCodec: sumCodec, UpdateCodec: blobCodec})
		if err := errors.Join(err, m.Start(t.Context(), nil)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close(); link.Close() })
		g.machines, g.links = append(g.machines, m), append(g.links, link)
	}
	for _, m := range g.machines { // so that each node opens its session
		if _, err := m.Propose(t.Context(), blob{}); err != nil {
			t.Fatal(err)
		}
	}
	for !g.connected() {
		<-time.After(time.Millisecond)
	}
	g.before = g.dropped()
	return g
}

func (g *sized) connected() bool {
	for _, l := range g.links {
		for _, p := range l.Stats().Peers {
			if !p.Connected {
				return false
			}
		}
	}
	return true
}

func (g *sized) dropped() (n uint64) {
	for _, l := range g.links {
		n += l.Stats().Dropped
	}
	return n
}

// of returns the leader, or a follower.
func (g *sized) of(leads bool) *raft.Machine[sum, blob, struct{}] {
	for _, m := range g.machines {
		if (m.Status().Role == "leader") == leads {
			return m
		}
	}
	return g.machines[0]
}

// propose proposes updates of a size from many callers concurrently.
func (g *sized) propose(t *testing.T, m *raft.Machine[sum, blob, struct{}], size, callers, each int) {
	t.Helper()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				if _, err := m.Propose(t.Context(), blob{make([]byte, size)}); err != nil {
					t.Errorf("%d bytes: %v", size, err)
				}
			}
		})
	}
	all.Wait()
	g.want += uint64(size * callers * each)
	if n := g.dropped() - g.before; n > 0 {
		t.Errorf("%d callers with updates of %d bytes: %d messages were dropped", callers, size, n)
		g.before += n
	}
}

// check checks that all nodes have applied all updates.
func (g *sized) check(t *testing.T) {
	t.Helper()
	for _, m := range g.machines {
		name := m.Status().Node // not within Read, which blocks Status
		if err := m.Read(t.Context(), func(s *sum) {
			if s.bytes != g.want {
				t.Errorf("%s has %d bytes, want %d", name, s.bytes, g.want)
			}
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestNothingIsDropped: the transports of connected nodes drop no messages, for any size and number
// of updates.
func TestNothingIsDropped(t *testing.T) {
	t.Parallel()
	g := newSized(t, 0)
	type load struct{ bytes, callers, each int }
	all := []load{{4 << 10, 1000, 4}, {64 << 10, 256, 4}, {256 << 10, 64, 4}, {1 << 20, 32, 4}, {5 << 20, 8, 2}, {16 << 20, 2, 2}}
	for _, load := range speed.Pick(t, []load{{4 << 10, 500, 1}, {256 << 10, 8, 1}, {5 << 20, 2, 1}}, all, all) {
		g.propose(t, g.of(true), load.bytes, load.callers, load.each)
	}
	g.check(t)
}

// TestAFollowerPassesOnWhatFits: a follower forwards no more updates at a time than the transport can
// queue, even if many more wait at the follower.
func TestAFollowerPassesOnWhatFits(t *testing.T) {
	t.Parallel()
	g := newSized(t, raft.PassBytesMax+4<<20)
	g.propose(t, g.of(false), 1<<20, speed.Pick(t, 32, 64, 200), 1)
	g.check(t)
}
