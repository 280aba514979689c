package raft_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// stallingLog is a log whose calls can be made to hang.
type stallingLog struct {
	wal.Log
	hangs atomic.Pointer[chan struct{}]
}

func (l *stallingLog) wait() {
	if c := l.hangs.Load(); c != nil {
		<-*c
	}
}

func (l *stallingLog) Save(s *pb.HardState, e []*pb.Entry, sync bool) error {
	l.wait()
	return l.Log.Save(s, e, sync)
}

func (l *stallingLog) SaveSnapshot(s *pb.Snapshot) error {
	l.wait()
	return l.Log.SaveSnapshot(s)
}

// stalling opens a state machine on one node. hang makes its disk hang until the returned function
// free is called.
func stalling(t *testing.T) (m *machine, hang func() (free func())) {
	t.Helper()
	l := new(stallingLog)
	disk := newMemoryDisk(1)
	disk.wrap = func(log wal.Log) wal.Log { l.Log = log; return l }
	m = open(t, raft.Config{Disk: disk, Heartbeat: 10 * time.Millisecond, ElectionTimeout: 100 * time.Millisecond})
	return m, func() func() {
		c := make(chan struct{})
		l.hangs.Store(&c)
		free := sync.OnceFunc(func() { l.hangs.Store(nil); close(c) })
		t.Cleanup(free)
		return free
	}
}

// TestASnapshotNobodyWaitsFor: the context of a caller of Snapshot may end while the snapshot is
// taken.
func TestASnapshotNobodyWaitsFor(t *testing.T) {
	m, hang := stalling(t)
	if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		free := hang()
		go func() { cancel(); free() }()
		if _, err := m.Snapshot(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadsWithoutAMajority: reads that are canceled without a majority are removed from the node.
func TestReadsWithoutAMajority(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		ms, _ := v.group()
		if _, err := ms[0].Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
			t.Fatal(err)
		}
		for _, m := range ms[1:] {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
		for leads := true; leads; _, leads = ms[0].Leader() {
			pause()
		}
		impatient, cancel := context.WithCancel(t.Context())
		cancel()
		var err error
		for range 20_000 { // more than the limit of concurrent reads
			if err = ms[0].Read(impatient, func(*lists) {}); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		for errors.Is(err, fsm.ErrTooMany) { // until the node has removed the canceled reads
			pause()
			err = ms[0].Read(impatient, func(*lists) {})
		}
	})
}

var errNoCode = errors.New("no code for that")

// TestAStateThatCannotBeWritten: if the codec cannot encode the state, the node still applies updates
// and reads, and takes a snapshot once the codec succeeds again.
func TestAStateThatCannotBeWritten(t *testing.T) {
	d := listsDefinition
	var fails atomic.Bool
	d.StateCodec.Append = func(b []byte, l *lists) ([]byte, error) {
		if fails.Load() {
			return nil, errNoCode
		}
		return listsCodec.Append(b, l)
	}
	m, err := raft.New(raft.Config{
		Topology: "test", Group: "lists", Disk: newMemoryDisk(1), SnapshotEvery: 5, Logger: slog.New(slog.DiscardHandler),
	}, d)
	if err == nil {
		err = m.Start(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	propose := func(n int) {
		t.Helper()
		for range n {
			if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	propose(1)
	fails.Store(true)
	propose(1)
	if _, err := m.Snapshot(t.Context()); !errors.Is(err, errNoCode) {
		t.Errorf("a snapshot: %v", err)
	}
	propose(30)
	at := m.Status().Snapshot
	fails.Store(false)
	for began := time.Now(); m.Status().Snapshot <= at; { // a snapshot is taken in the background
		if propose(1); time.Since(began) > 10*time.Second {
			t.Fatal("the node must take a snapshot after the codec succeeds again")
		}
	}
}

// TestTwoGroupsOfOneName: a process refuses to start a second group with the same name and node,
// because the groups would receive each other's messages.
func TestTwoGroupsOfOneName(t *testing.T) {
	c := overGRPC(t, "n1")[0]
	first := open(t, c)
	other := c
	other.Disk = newMemoryDisk(2)
	if m, err := tryOpen(other); err == nil {
		_ = m.Close()
		t.Error("the second group must not start")
	}
	if _, err := first.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, c).Propose(t.Context(), appendTo{0, 2, -1}); err != nil {
		t.Error(err)
	}
}

// TestAMemberOfAnotherGroup: a node that is removed from one group stays in another group on the
// same listeners.
func TestAMemberOfAnotherGroup(t *testing.T) {
	t.Parallel()
	configs := overGRPC(t, "n1", "n2", "n3") // both groups of a node use its listener
	groups := map[string]map[string]*machine{"left": {}, "right": {}}
	for name, ms := range groups {
		for _, c := range configs {
			c.Topology, c.Group, c.Disk, c.Forward, c.Logger = "test", name, newMemoryDisk(1), true, slog.New(slog.DiscardHandler)
			m, err := raft.New(c, listsDefinition)
			if err == nil {
				err = m.Start(t.Context(), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Close() })
			ms[c.Node] = m
		}
		if _, err := ms["n1"].Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
			t.Fatal(err)
		}
	}
	left, right := groups["left"], groups["right"]
	for ; ; pause() {
		leader, _ := left["n1"].Leader()
		if leader == "n3" {
			_ = left["n3"].TransferLeader(t.Context(), "n1")
			continue
		}
		if m := left[leader]; m != nil && m.ChangeMembers(t.Context(), raft.Change{Kind: raft.Remove, Name: "n3"}) == nil {
			break
		}
	}
	for _, name := range []string{"n1", "n2"} { // wait until both nodes know the change
		if err := left[name].Read(t.Context(), func(*lists) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := left["n3"].Close(); err != nil { // so that it does not introduce itself again
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := right["n1"].Propose(ctx, appendTo{0, 2, -1}); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	if err := right["n3"].Read(ctx, func(l *lists) { got = slices.Clone(l.items[0]) }); err != nil || len(got) != 2 {
		t.Errorf("in the other group the node must read 2 items, got %v, %v", got, err)
	}
}

// TestMarkAppliedWhileASnapshotIsTaken: the controller marks transactions as applied while the node
// writes them and reads their number.
func TestMarkAppliedWhileASnapshotIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := startProcessors(t)
		s := list[0]
		for i := range 100 {
			if a := ask[raft.Answer](s, &raft.MasterCommit{Request: uint64(i), Data: fmt.Append(nil, i)}); a.Err != nil {
				t.Fatal(a.Err)
			}
			s.send(&raft.Read{})
			s.send(&raft.MarkApplied{TransactionID: uint64(i + 1), State: fmt.Append(nil, i)})
			for {
				if a, ok := (<-s.answers).(raft.Answer); ok {
					if a.Err != nil {
						t.Fatal(a.Err)
					}
					break
				}
			}
		}
	})
}

// TestAMachineThatWasAboutToJoin: a node that has voted in a group without being in its members yet
// does not found a new group.
func TestAMachineThatWasAboutToJoin(t *testing.T) {
	disk := newMemoryDisk(1)
	id := wal.Identity{Topology: "test", Group: "lists", Node: raft.MemberID("n1")}
	log, _, err := disk.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Save(&pb.HardState{Term: new(uint64(7)), Vote: new(uint64(5)), Commit: new(uint64(0))}, nil, true); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	m := open(t, raft.Config{
		Node: "n1", Peers: map[string]string{"n1": loopback.Addresses(t, 1)[0]}, Disk: disk, Heartbeat: time.Millisecond, ElectionTimeout: 2 * time.Millisecond,
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := m.Propose(ctx, appendTo{0, 1, -1}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an update: %v", err)
	}
	if s := m.Status(); s.Role != "joining" || s.Term != 7 {
		t.Errorf("the node must be joining in term 7, got %s in term %d", s.Role, s.Term)
	}
}

// TestGroupsOfOneTransportAgree: a group with TLS does not start on a transport that another group
// has created without TLS.
func TestGroupsOfOneTransportAgree(t *testing.T) {
	c := overGRPC(t, "n1")[0]
	open(t, c)
	c.Topology, c.Group, c.Disk, c.Logger = "test", "secret", newMemoryDisk(1), slog.New(slog.DiscardHandler)
	c.TLSCert, c.TLSKey, c.TLSCA = "a.pem", "b.pem", "c.pem"
	m, err := raft.New(c, listsDefinition)
	if err != nil {
		t.Fatal(err)
	}
	if m.Start(t.Context(), nil) == nil {
		_ = m.Close()
		t.Error("the group must not start without TLS")
	}
}

// ignoreAnswers receives the messages of a state machine in a topology and drops them.
type ignoreAnswers struct{}

func (ignoreAnswers) Outcome(fsm.Outcome[appendTo, struct{}]) {}
func (ignoreAnswers) Upcoming(fsm.Upcoming[appendTo])         {}

// TestAnErrorIsToldOnce: if Answer has returned the error that stopped the state machine, Close does
// not return it again, and it is logged once.
func TestAnErrorIsToldOnce(t *testing.T) {
	for _, answers := range []bool{false, true} {
		disk := newMemoryDisk(1)
		var logged bytes.Buffer
		m, err := raft.New(raft.Config{
			Topology: "test", Group: "lists", Disk: disk, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
		}, listsDefinition)
		if err != nil {
			t.Fatal(err)
		}
		host := &processorHost{wake: make(chan struct{}, 1)}
		if err := m.Start(t.Context(), host); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
			t.Fatal(err)
		}
		disk.FailSync()
		if _, err := m.Propose(t.Context(), appendTo{0, 2, -1}); err == nil {
			t.Fatal("the update must fail with the disk")
		}
		<-host.wake
		if answers {
			if err := m.Answer(ignoreAnswers{}); !errors.Is(err, wal.ErrFailed) {
				t.Errorf("Answer: %v", err)
			}
		}
		if err := m.Close(); (err == nil) != answers {
			t.Errorf("Close: %v; Answer has returned the error: %t", err, answers)
		}
		if n := strings.Count(logged.String(), wal.ErrFailed.Error()); n != 1 {
			t.Errorf("the error must be logged once, got %d times:\n%s", n, &logged)
		}
	}
}

// TestAFailedNodeHasStopped: a failed node refuses updates and reads with ErrStopped, which is not
// an error of the state machine.
func TestAFailedNodeHasStopped(t *testing.T) {
	disk := newMemoryDisk(1)
	m, err := raft.New(raft.Config{Topology: "test", Group: "lists", Disk: disk, Logger: slog.New(slog.DiscardHandler)}, listsDefinition)
	if err != nil {
		t.Fatal(err)
	}
	host := &processorHost{wake: make(chan struct{}, 1)}
	if err := m.Start(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
		t.Fatal(err)
	}
	disk.FailSync()
	if _, err := m.Propose(t.Context(), appendTo{0, 2, -1}); !errors.Is(err, fsm.ErrStopped) || !errors.Is(err, wal.ErrFailed) || fsm.OutcomeKnown(err) {
		t.Errorf("the update whose sync failed: %v", err)
	}
	<-host.wake
	if _, err := m.Propose(t.Context(), appendTo{0, 3, -1}); !errors.Is(err, fsm.ErrStopped) || !errors.Is(err, wal.ErrFailed) || !fsm.OutcomeKnown(err) {
		t.Errorf("an update afterwards: %v", err)
	}
	if err := m.Read(t.Context(), func(*lists) {}); !errors.Is(err, fsm.ErrStopped) || !errors.Is(err, wal.ErrFailed) {
		t.Errorf("a read afterwards: %v", err)
	}
	if err := m.Close(); errors.Is(err, fsm.ErrStopped) || !errors.Is(err, wal.ErrFailed) {
		t.Errorf("Close: %v", err)
	}
}
