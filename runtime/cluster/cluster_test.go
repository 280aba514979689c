package cluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/runtime/cluster/table"
	tableraft "github.com/topogen/topogen/runtime/cluster/table/raft"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
)

// config returns the configuration of a program on a number of nodes.
func (p *program) config(nodes int, dir string, tables *table.Memory) Config {
	c := Config{
		Topology: "program", Plan: "plan", Nodes: map[string]string{}, Dir: dir,
		Table:      func(table.Setup) (table.Table, error) { return tables.Open(), nil },
		Detect:     func(s member.Settings) (member.Detector, error) { return member.New(s) },
		Membership: member.Config{Profile: member.ProfileLocal, Fence: member.FenceOff},
	}
	for i := range nodes {
		c.Nodes[fmt.Sprintf("n%d", i+1)] = fmt.Sprintf("n%d:1", i+1)
	}
	for i, s := range p.processors {
		place := Spread
		if s.everyNode {
			place = EveryNode
		}
		c.Processors = append(c.Processors, Processor{Name: s.name, Instances: s.instances, Placement: place, With: i})
	}
	return c
}

// newProgram returns a program with a source, a cycle, a sink, and instances on each node.
func newProgram() *program {
	return &program{
		processors: []part{{"source", 2, true, false}, {"relay", 4, false, false}, {"sink", 3, false, false}, {"probe", 2, false, true}},
		edges:      [][2]int{{0, 1}, {1, 1}, {1, 2}, {0, 2}, {1, 3}, {3, 2}},
		groups:     []int{0, 1, 3, 2},
		capacity:   64, messages: 500,
		counts: map[string]int{}, runs: map[string]int{},
	}
}

// runAll runs the program on all nodes and checks what they have sent and received.
func (p *program) runAll(t *testing.T, tops []*top) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var running sync.WaitGroup
	for i, top := range tops {
		running.Go(func() {
			if err := top.pool.Run(ctx); err != nil {
				t.Errorf("node %d: %v", i+1, err)
			}
		})
	}
	running.Wait()
	if err := p.check(tops); err != nil {
		t.Error(err)
	}
	t.Log(len(p.counts), "pairs")
}

// join returns the transport of a node, which is closed at the end of the test.
func join(t *testing.T, network *transport.Memory, name string) transport.Transport {
	t.Helper()
	wire, err := network.Join(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = wire.Close() })
	return wire
}

func TestProgramOnSeveralNodes(t *testing.T) {
	for _, nodes := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				newProgram().runInMemory(t, nodes, func(wire transport.Transport) transport.Transport { return wire })
			})
		})
	}
}

// runInMemory runs the program on nodes of a network in memory. The function wrap is called for
// the transport of each node, and returns the transport that the node uses.
func (p *program) runInMemory(t *testing.T, nodes int, wrap func(transport.Transport) transport.Transport) {
	t.Helper()
	network := transport.NewMemory(transport.MemoryOptions{})
	tables := table.NewMemory()
	var tops []*top
	for i := range nodes {
		name := fmt.Sprintf("n%d", i+1)
		wire := wrap(join(t, network, name))
		top, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
			s.Transport = wire
			return Open(p.config(nodes, t.TempDir(), tables), s)
		}, piper.Node(name))
		if err != nil {
			t.Fatal(err)
		}
		tops = append(tops, top)
	}
	p.runAll(t, tops)
}

// TestProgramOnHosts runs a program as on several hosts: gRPC between the nodes, and the
// address table in a raft group on their disks.
func TestProgramOnHosts(t *testing.T) {
	t.Parallel() // it waits for other nodes
	p := newProgram()
	p.runAll(t, p.onHosts(t, 3))
}

// onHosts makes the topologies of nodes with sockets and disks of their own.
func (p *program) onHosts(t *testing.T, nodes int) (tops []*top) {
	t.Helper()
	addresses := map[string]string{}
	for i, address := range loopback.Addresses(t, nodes) {
		addresses[fmt.Sprintf("n%d", i+1)] = address
	}
	for i := range nodes {
		name := fmt.Sprintf("n%d", i+1)
		dir := t.TempDir()
		top, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
			c := p.config(nodes, dir, nil)
			c.Nodes, c.Table = addresses, func(s table.Setup) (table.Table, error) {
				return tableraft.Open(tableraft.Config{
					Topology: s.Topology, Node: s.Node, Address: s.Address, First: s.First, Plan: s.Plan,
					Dir: s.Dir, Transport: s.Transport, Gone: s.Gone, Logger: s.Logger,
					Heartbeat: 20 * time.Millisecond, ElectionTimeout: 200 * time.Millisecond,
				})
			}
			return Open(c, s)
		}, piper.Node(name), piper.DrainTimeout(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		tops = append(tops, top)
	}
	return tops
}
