package raft_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// inMemory starts three nodes with simulated disks and a network in memory, in the virtual time of
// synctest.
func inMemory(t *testing.T, d fsm.Definition[lists, appendTo, struct{}]) (ms []*machine) {
	t.Helper()
	network := transport.NewMemory(transport.MemoryOptions{})
	peers := map[string]string{"n1": "a", "n2": "b", "n3": "c"}
	for i := range len(peers) {
		name := fmt.Sprintf("n%d", i+1)
		link, err := network.Join(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = link.Close() })
		m, err := raft.New(raft.Config{
			Topology: "test", Group: "lists", Node: name, Peers: peers, Transport: link, Disk: newMemoryDisk(uint64(i)), Forward: true,
		}, d)
		if err == nil {
			err = m.Start(t.Context(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		ms = append(ms, m)
	}
	return ms
}

// leaderOf waits until all nodes agree on a leader.
func leaderOf(t *testing.T, ms []*machine) *machine {
	t.Helper()
	for range 1000 {
		time.Sleep(100 * time.Millisecond)
		name, _ := ms[0].Leader()
		agreed := name != ""
		for _, m := range ms {
			other, _ := m.Leader()
			agreed = agreed && other == name
		}
		if agreed {
			for _, m := range ms {
				if m.Status().Node == name {
					return m
				}
			}
		}
	}
	t.Fatal("the nodes must agree on a leader")
	return nil
}

// TestSlowUserCodeLeavesTheLeader: the leader stays the leader while a read, the encoding of the
// state, or updates take many election timeouts.
func TestSlowUserCodeLeavesTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := listsDefinition
		var slow, slowUpdate atomic.Bool // the other nodes encode their states and update them too
		d.StateCodec.Append = func(b []byte, l *lists) ([]byte, error) {
			if slow.Load() {
				time.Sleep(20 * time.Second)
			}
			return listsCodec.Append(b, l)
		}
		d.Update = fsm.NoResult(func(a *appendTo, l *lists) error {
			if slowUpdate.Load() {
				time.Sleep(20 * time.Second)
			}
			return a.Update(l)
		})
		ms := inMemory(t, d)
		leader := leaderOf(t, ms)
		if _, err := leader.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
			t.Fatal(err)
		}
		term := leader.Status().Term
		if err := leader.Read(t.Context(), func(*lists) { time.Sleep(20 * time.Second) }); err != nil {
			t.Error(err)
		}
		slow.Store(true)
		if _, err := leader.Snapshot(t.Context()); err != nil {
			t.Error(err)
		}
		slow.Store(false)
		slowUpdate.Store(true)
		var all sync.WaitGroup
		for i := range uint64(4) {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second) // one after the other reaches the node, while the first is applied
				if _, err := leader.Propose(t.Context(), appendTo{0, 2 + i, -1}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if s := leader.Status(); s.Role != "leader" || s.Term != term {
			t.Errorf("the node must still lead in term %d, got the role %s in term %d", term, s.Role, s.Term)
		}
	})
}

// TestWaitReadsYourOwnWrites: after Wait for the index of an update, a stale read on another node
// sees the update.
func TestWaitReadsYourOwnWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := inMemory(t, listsDefinition)
		leaderOf(t, ms)
		for i := range uint64(20) {
			a, err := ms[i%3].ProposeResult(t.Context(), appendTo{0, 1000 + i*13*17, -1})
			if err != nil {
				t.Fatal(err)
			}
			other := ms[(i+1)%3]
			if err := other.Wait(t.Context(), a.Index); err != nil {
				t.Fatal(err)
			}
			if err := other.Stale(func(l *lists) {
				if !slices.Contains(l.items[0], 1000+i*13*17) {
					t.Errorf("a read after Wait(%d) must see %d", a.Index, 1000+i*13*17)
				}
			}); err != nil {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		waits := make(chan error)
		go func() { waits <- ms[0].Wait(ctx, 1<<40) }()
		synctest.Wait()
		if _, err := ms[0].Propose(t.Context(), appendTo{0, 2, -1}); err != nil {
			t.Fatal(err)
		}
		if err := <-waits; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait for a future entry: %v", err)
		}
		closed := make(chan error)
		go func() { closed <- ms[1].Wait(t.Context(), 1<<40) }()
		synctest.Wait()
		if err := ms[1].Close(); err != nil {
			t.Error(err)
		}
		if err := <-closed; !errors.Is(err, fsm.ErrStopped) {
			t.Errorf("Wait at a closed node: %v", err)
		}
	})
}

// TestTheStatusOfAHangingDisk: the status contains its age while the disk hangs.
func TestTheStatusOfAHangingDisk(t *testing.T) {
	m, hang := stalling(t)
	if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
		t.Fatal(err)
	}
	if s := m.Status(); s.Age != 0 || s.Applied == 0 {
		t.Errorf("%+v", s)
	}
	hang()
	go func() { _, _ = m.Propose(t.Context(), appendTo{0, 2, -1}) }() // hangs in the disk
	for m.Status().Age == 0 {                                         // until the node's loop hangs
		runtime.Gosched()
	}
}

// TestSlowUpdateInVirtualTime: while updates that wait are applied, the node does not keep the virtual
// time of synctest from passing.
func TestSlowUpdateInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := poisonDefinition
		d.Update = fsm.NoResult(func(p *poison, sum *total) error {
			time.Sleep(time.Second)
			return p.Update(sum)
		})
		m, err := raft.New(raft.Config{Disk: newMemoryDisk(1), Topology: "test", Group: "total", NoChecksums: true}, d)
		if err == nil {
			err = m.Start(t.Context(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		const callers, updates = 4, 3
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond) // so that some propose while an update waits
				for range updates {
					if _, err := m.Propose(t.Context(), 1); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if err := m.Stale(func(sum *total) {
			if *sum != callers*updates {
				t.Errorf("the sum is %d, want %d", *sum, callers*updates)
			}
		}); err != nil {
			t.Error(err)
		}
	})
}
