package raft_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/internal/race"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
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

// TestNothingIsDropped: however large updates are, and however many wait, the
// transports of a group whose nodes are connected drop nothing.
func TestNothingIsDropped(t *testing.T) {
	names := []string{"n1", "n2", "n3"}
	peers := map[string]string{}
	for i, address := range freeAddresses(t, len(names)) {
		peers[names[i]] = address
	}
	quiet := slog.New(slog.DiscardHandler)
	var machines []*raft.Machine[sum, blob, struct{}]
	var links []*grpc.Transport
	for i, name := range names {
		link, err := grpc.Listen(grpc.Config{Node: name, Topology: "test", Version: "1", Address: peers[name], Peers: peers, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		log, stored, err := wal.NewDisk(uint64(i)).Open(wal.Identity{Topology: "test", Group: "sum", Node: raft.MemberID(name)}, wal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := raft.New(raft.Config{
			Topology: "test", Group: "sum", Node: name, Peers: peers, Dir: t.TempDir(), Transport: link, Log: log, Stored: stored,
			Forward: true, Logger: quiet,
		}, fsm.Definition[sum, blob, struct{}]{Update: fsm.NoResult((*blob).Update), StateCodec: sumCodec, UpdateCodec: blobCodec})
		if err := errors.Join(err, m.Start(t.Context(), nil)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close(); link.Close() })
		machines, links = append(machines, m), append(links, link)
	}
	if _, err := machines[0].Propose(t.Context(), blob{}); err != nil {
		t.Fatal(err)
	}
	dropped := func() (n uint64) {
		for _, l := range links {
			n += l.Stats().Dropped
		}
		return n
	}
	allConnected := func() bool {
		for _, l := range links {
			for _, p := range l.Stats().Peers {
				if !p.Connected {
					return false
				}
			}
		}
		return true
	}
	for !allConnected() {
		<-time.After(time.Millisecond)
	}
	leader := machines[0]
	for _, m := range machines {
		if m.Status().Role == "leader" {
			leader = m
		}
	}
	before, want := dropped(), uint64(0)
	for _, load := range []struct{ bytes, callers, each int }{
		{4 << 10, 1000, 4}, {64 << 10, 256, 4}, {256 << 10, 64, 4}, {1 << 20, 32, 4}, {5 << 20, 8, 2}, {16 << 20, 2, 2},
	} {
		if race.Enabled { // it takes ten times as long
			load.callers, load.each = min(load.callers, 100), 1
		}
		var all sync.WaitGroup
		for range load.callers {
			all.Go(func() {
				for range load.each {
					if _, err := leader.Propose(t.Context(), blob{make([]byte, load.bytes)}); err != nil {
						t.Errorf("%d bytes: %v", load.bytes, err)
					}
				}
			})
		}
		all.Wait()
		want += uint64(load.bytes * load.callers * load.each)
		if n := dropped() - before; n > 0 {
			t.Errorf("%d callers with updates of %d bytes: %d messages were dropped", load.callers, load.bytes, n)
			before += n
		}
	}
	for i, m := range machines {
		if err := m.Read(t.Context(), func(s *sum) {
			if s.bytes != want {
				t.Errorf("%s has %d bytes, want %d", names[i], s.bytes, want)
			}
		}); err != nil {
			t.Error(err)
		}
	}
}
