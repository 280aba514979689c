package raft_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/cluster/table/raft"
)

const leaseTTL = 6 * time.Second

// acquireAll gives each node the lease of its name.
func acquireAll(t *testing.T, nodes map[string]*node) map[string]*table.Lease {
	t.Helper()
	leases := map[string]*table.Lease{}
	for name, n := range nodes {
		l, err := n.Acquire(t.Context(), "node "+name, name, leaseTTL)
		if err != nil {
			t.Fatal(err)
		}
		leases[name] = l
	}
	return leases
}

// TestEntriesOfIdleNodes counts the entries that nodes write while they only renew their leases: as many with all nodes as with
// one.
func TestEntriesOfIdleNodes(t *testing.T) {
	count := speed.Pick(t, 6, 12, 60)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.change = func(config *raft.Config) { config.ElectionTimeout, config.Heartbeat = 0, 0 }
		ctx, nodes := c.started(t)
		var mu sync.Mutex
		var joining sync.WaitGroup
		for i := len(first); i < count; i++ {
			name := fmt.Sprint("n", i+1)
			n := c.open(t, c.config(name))
			nodes[name] = n
			joining.Go(func() {
				if err := n.Sync(ctx); err != nil {
					mu.Lock()
					defer mu.Unlock()
					t.Error(err)
				}
			})
		}
		joining.Wait()
		leases := acquireAll(t, nodes)
		time.Sleep(time.Minute) // virtual time
		before := nodes["n1"].Status().Applied
		time.Sleep(time.Minute)
		entries := nodes["n1"].Status().Applied - before
		t.Logf("%d nodes have written %d entries in a minute", count, entries)
		if want := uint64(4 * time.Minute / leaseTTL); entries > want+1 || entries < want-1 {
			t.Errorf("%d nodes have written %d entries in a minute, want %d", count, entries, want)
		}
		for name, l := range leases {
			if err := l.Err(); err != nil {
				t.Errorf("%s has lost its lease: %v", name, err)
			}
		}
	})
}

// TestLeasesSurviveTheLeader: the leader of the log dies, and the other nodes keep their leases.
func TestLeasesSurviveTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.change = func(config *raft.Config) { config.ElectionTimeout, config.Heartbeat = 0, 0 }
		_, nodes := c.started(t)
		leases := acquireAll(t, nodes)
		time.Sleep(time.Minute) // virtual time
		leader := nodes["n1"].Status().Leader
		if err := nodes[leader].Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for name, l := range leases {
			if err := l.Err(); (err == nil) == (name == leader) {
				t.Errorf("the leader was %s, and the lease of %s has the error %v", leader, name, err)
			}
		}
	})
}
