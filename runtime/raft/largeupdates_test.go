package raft_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
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

// newSized starts three nodes that are connected by gRPC, and waits until all are connected.
func newSized(t *testing.T) *sized {
	t.Helper()
	names := []string{"n1", "n2", "n3"}
	peers := map[string]string{}
	for i, address := range loopback.Addresses(t, len(names)) {
		peers[names[i]] = address
	}
	quiet := slog.New(slog.DiscardHandler)
	g := new(sized)
	for i, name := range names {
		link, err := grpc.Listen(grpc.Config{Node: name, Topology: "test", Version: "1", Address: peers[name], Peers: peers, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { link.Close() })
		g.links = append(g.links, link)
		timeout := speed.Pick(t, 300*time.Millisecond, time.Second, time.Second)
		g.start(t, raft.Config{Node: name, Peers: peers, Transport: link, Disk: newMemoryDisk(uint64(i)), Heartbeat: timeout / 10, ElectionTimeout: timeout})
	}
	g.openSessions(t)
	for !g.connected() {
		<-time.After(time.Millisecond)
	}
	g.before = g.dropped()
	return g
}

// start starts a node.
func (g *sized) start(t *testing.T, c raft.Config) {
	t.Helper()
	c.Topology, c.Group, c.Forward, c.Logger = "test", "sum", true, slog.New(slog.DiscardHandler)
	m, err := raft.New(c, fsm.Definition[sum, blob, struct{}]{Update: fsm.NoResult((*blob).Update), StateCodec: sumCodec, UpdateCodec: blobCodec})
	if err := errors.Join(err, m.Start(t.Context(), nil)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	g.machines = append(g.machines, m)
}

// openSessions proposes an update at each node, which opens its session.
func (g *sized) openSessions(t *testing.T) {
	t.Helper()
	for _, m := range g.machines {
		if _, err := m.Propose(t.Context(), blob{}); err != nil {
			t.Fatal(err)
		}
	}
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
// of updates, at the leader and at a follower.
func TestNothingIsDropped(t *testing.T) {
	t.Parallel()
	g := newSized(t)
	type load struct{ bytes, callers, each int }
	all := []load{{4 << 10, 1000, 4}, {64 << 10, 256, 4}, {256 << 10, 64, 4}, {1 << 20, 32, 4}, {5 << 20, 8, 2}, {16 << 20, 2, 2}}
	for _, load := range speed.Pick(t, []load{{4 << 10, 500, 1}, {256 << 10, 8, 1}, {5 << 20, 2, 1}}, all, all) {
		g.propose(t, g.of(true), load.bytes, speed.Tenth(t, load.callers), load.each)
	}
	g.propose(t, g.of(false), 1<<20, speed.Tenth(t, speed.Pick(t, 2, 200, 200)), 1)
	g.check(t)
}

// holdingLink is a transport that holds large messages until they are released.
type holdingLink struct {
	transport.Transport
	mu       sync.Mutex
	released bool
	held     []func()
	bytes    int
}

func (l *holdingLink) Send(to string, messages ...transport.Message) {
	for _, m := range messages {
		send := func() { l.Transport.Send(to, m) }
		l.mu.Lock()
		hold := !l.released && len(m.Payload) > 1<<10
		if hold {
			l.held, l.bytes = append(l.held, send), l.bytes+len(m.Payload)
		}
		l.mu.Unlock()
		if !hold {
			send()
		}
	}
}

func (l *holdingLink) release() {
	l.mu.Lock()
	held := l.held
	l.released, l.held = true, nil
	l.mu.Unlock()
	for _, send := range held {
		send()
	}
}

// TestAFollowerPassesOnWhatFits: a follower forwards no more updates at a time than the transport can
// queue, even if many more wait at the follower.
func TestAFollowerPassesOnWhatFits(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		links := map[string]*holdingLink{}
		g := new(sized)
		for _, name := range []string{"n1", "n2", "n3"} {
			c := v.connect(raft.Config{Node: name, Peers: named("n1", "n2", "n3")})
			links[name] = &holdingLink{Transport: c.Transport}
			c.Transport = links[name]
			g.start(t, c)
		}
		g.openSessions(t)
		follower := g.of(false)
		link := links[follower.Status().Node]
		done := make(chan struct{})
		const updates = 24
		go func() {
			g.propose(t, follower, 1<<20, updates, 1)
			close(done)
		}()
		synctest.Wait()
		if link.bytes < 1<<20 || link.bytes > raft.PassBytesMax+2<<20 {
			t.Errorf("the follower must forward up to %d bytes without an answer, got %d", raft.PassBytesMax, link.bytes)
		}
		for _, l := range links {
			l.release()
		}
		<-done
		g.check(t)
	})
}
