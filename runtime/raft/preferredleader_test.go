package raft_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
	pb "go.etcd.io/raft/v3/raftpb"
)

// instances is sixteen groups on three nodes, in virtual time.
type instances struct {
	*testing.T
	links map[string]transport.Transport
	disks map[string]*memoryDisk
	nodes map[string][]*machine // by name; nil: stopped
	apart time.Duration         // time between the starts of two groups of a node
	saves atomic.Int64
}

const instancesNumber = 16

var instancePeers = map[string]string{"n1": "a", "n2": "b", "n3": "c"}

func startInstances(t *testing.T, apart time.Duration) *instances {
	in := &instances{T: t, links: map[string]transport.Transport{}, disks: map[string]*memoryDisk{}, nodes: map[string][]*machine{}, apart: apart}
	network := transport.NewMemory(transport.MemoryOptions{})
	for _, name := range slices.Sorted(maps.Keys(instancePeers)) {
		link, err := network.Join(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = link.Close() })
		in.links[name] = &timedLink{Transport: link, at: map[time.Time]bool{}}
		in.start(name)
	}
	return in
}

// start starts all instances of a node.
func (in *instances) start(node string) {
	for i := range instancesNumber {
		where := fmt.Sprint(node, "/", i)
		if in.disks[where] == nil {
			in.disks[where] = newMemoryDisk(uint64(len(in.disks)))
			in.disks[where].wrap = func(l wal.Log) wal.Log { return countingLog{l, &in.saves} }
		}
		c := raft.Config{
			Topology: "test", Group: "lists", Instance: i, Instances: instancesNumber, Node: node, Peers: instancePeers,
			Transport: in.links[node], Forward: true, Disk: in.disks[where], Logger: slog.New(slog.DiscardHandler),
		}
		m, err := raft.New(c, listsDefinition)
		if err == nil {
			err = m.Start(in.Context(), nil)
		}
		if err != nil {
			in.Fatal(err)
		}
		in.Cleanup(func() { _ = m.Close() })
		in.nodes[node] = append(in.nodes[node], m)
		time.Sleep(in.apart)
	}
}

func (in *instances) stop(node string) {
	for _, m := range in.nodes[node] {
		if err := m.Close(); err != nil {
			in.Error(err)
		}
	}
	delete(in.nodes, node)
}

// leaders returns the leader of each group; "": no node leads it.
func (in *instances) leaders() (list [instancesNumber]string) {
	for i := range list {
		for node, ms := range in.nodes {
			if s := ms[i].Status(); s.Role == "leader" {
				list[i] = node
			}
		}
	}
	return list
}

// settle waits for a number of election timeouts, and returns how many groups each node leads.
func (in *instances) settle(timeouts int) map[string]int {
	time.Sleep(time.Duration(timeouts) * time.Second) // of the default configuration
	led := map[string]int{}
	for i, name := range in.leaders() {
		led[name]++
		if m := in.nodes[name]; m != nil {
			if _, err := m[i].Propose(in.Context(), appendTo{0, 1, -1}); err != nil {
				in.Errorf("group %d, led by %s: %v", i, name, err)
			}
		}
	}
	return led
}

// TestLeadersSpread: the leaders of the groups are distributed over the nodes. When a node stops,
// other nodes lead its groups, and they return to the node when it is back.
func TestLeadersSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := startInstances(t, 0)
		want := map[string]int{"n1": 6, "n2": 5, "n3": 5} // the i-th instance prefers the i-th node
		if led := in.settle(10); !maps.Equal(led, want) {
			t.Errorf("at first %v", led)
		}
		for range speed.Pick(t, 1, 5, 20) {
			in.stop("n2")
			if led := in.settle(10); led["n1"]+led["n3"] != instancesNumber {
				t.Errorf("without n2 %v", led)
			}
			in.start("n2")
			if led := in.settle(20); !maps.Equal(led, want) {
				t.Errorf("with n2 %v", led)
			}
		}
	})
}

// timedLink records the times at which messages are sent.
type timedLink struct {
	transport.Transport
	mu sync.Mutex
	at map[time.Time]bool
	n  int
}

func (l *timedLink) Send(to string, messages ...transport.Message) {
	l.mu.Lock()
	l.at[time.Now()], l.n = true, l.n+len(messages)
	l.mu.Unlock()
	l.Transport.Send(to, messages...)
}

// reset returns the number of messages since the last call, and of different times at which they
// were sent.
func (l *timedLink) reset() (messages, times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	messages, times = l.n, len(l.at)
	l.n = 0
	clear(l.at)
	return messages, times
}

// countingLog counts the calls of Save.
type countingLog struct {
	wal.Log
	saves *atomic.Int64
}

func (l countingLog) Save(s *pb.HardState, entries []*pb.Entry, sync bool) error {
	l.saves.Add(1)
	return l.Log.Save(s, entries, sync)
}

// TestIdleGroups: idle groups send only heartbeats and their answers, and write nothing. All groups
// of a node send them at the same times, so that they share frames.
func TestIdleGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := startInstances(t, 7*time.Millisecond) // so that the groups start at different times within a heartbeat
		in.settle(10)
		time.Sleep(time.Second) // until all updates are committed on all nodes
		saves := in.saves.Load()
		for _, l := range in.links {
			l.(*timedLink).reset()
		}
		const heartbeats = 100
		time.Sleep(heartbeats * 100 * time.Millisecond) // of the default configuration
		messages := 0
		for name, l := range in.links {
			n, times := l.(*timedLink).reset()
			if messages += n; times > 3*(heartbeats+1) { // its own heartbeats, and the answers to two other nodes
				t.Errorf("%s must send at no more than %d different times, got %d", name, 3*(heartbeats+1), times)
			}
		}
		if most := 2 * 2 * instancesNumber * (heartbeats + 1); messages > most || messages < most/2 {
			t.Errorf("there are %d messages, want up to %d", messages, most)
		}
		if n := in.saves.Load() - saves; n > 0 || saves == 0 {
			t.Errorf("idle groups must not write; got %d writes, after %d before", n, saves)
		}
	})
}
