package raft_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// instances are sixteen groups on three nodes, in virtual time.
type instances struct {
	*testing.T
	links map[string]transport.Transport
	disks map[string]*memoryDisk
	nodes map[string][]*machine // by name; nil: is stopped
}

const instancesNumber = 16

var instancePeers = map[string]string{"n1": "a", "n2": "b", "n3": "c"}

func startInstances(t *testing.T) *instances {
	in := &instances{T: t, links: map[string]transport.Transport{}, disks: map[string]*memoryDisk{}, nodes: map[string][]*machine{}}
	network := transport.NewMemory(transport.MemoryOptions{})
	for _, name := range slices.Sorted(maps.Keys(instancePeers)) {
		link, err := network.Join(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = link.Close() })
		in.links[name] = link
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

// leaders are the leaders of the groups; "" where the nodes do not agree on one.
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

// settle waits for so many election timeouts, and returns who leads how many groups.
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

// TestLeadersSpread over the nodes, move to others where a node is gone, and come back
// with it.
func TestLeadersSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := startInstances(t)
		want := map[string]int{"n1": 6, "n2": 5, "n3": 5} // the i-th instance prefers the i-th node
		if led := in.settle(10); !maps.Equal(led, want) {
			t.Errorf("at first %v", led)
		}
		for range 5 { // however often
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
