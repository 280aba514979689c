// Package clustertest runs the nodes of a generated topology in one process, for the tests
// of generated code.
//
// # Usage
//
//	tops := clustertest.Run(t, 3, place, func(node int, opts ...pool.Option) (*Topology, error) {
//		return New(Processors{}, opts...)
//	}, nil)
//
// # Limits
//
// The nodes of Run are border.Nodes that pass messages on in memory. They have no failure
// detection, resend nothing, and know the placement from the test. RunCluster runs nodes of
// package cluster with a transport in memory. Their placement is not known. RunLoopback runs
// them with their own transport, in real time.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/transport"
)

// leaving is longer than a library of failure detection goes on after the end of its node.
const leaving = time.Minute

// Bubble runs a test in virtual time.
func Bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(leaving) })
		test(t)
	})
}

// Everywhere is the node of an instance that runs on every node.
const Everywhere = -1

// Place chooses the node of an instance: a number that is taken modulo the number of nodes,
// or Everywhere.
type Place func(processor, instance int) (node int)

// Topology is a generated topology.
type Topology interface {
	Run(ctx context.Context) error
	Snapshot() pool.Snapshot
}

// Each runs a test with 1, 2 and 3 nodes that have one worker and several. A quick run has some
// of the combinations.
func Each(t *testing.T, test func(t *testing.T, n int, workers pool.Option)) {
	t.Helper()
	for n := 1; n <= 3; n++ {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d nodes, %d workers", n, workers), func(t *testing.T) {
				if (n == 2) != (workers == 1) {
					speed.Landing(t)
				}
				test(t, n, pool.Workers(workers))
			})
		}
	}
}

// runMax is the time after which a test gives up. It is far above what a run takes on a busy
// computer.
const runMax = time.Minute

// Run makes and runs a topology on n nodes. During the run it calls use, which may be nil;
// use closes the external senders. Run fails the test if a node does not finish, if a message
// is left, or if the figures of an edge do not add up.
func Run[T Topology](t *testing.T, n int, place Place, make func(node int, opts ...pool.Option) (T, error), use func(nodes []T)) (nodes []T) {
	t.Helper()
	return RunExpecting(t, n, place, make, use, nil)
}

// RunExpecting is Run for a topology some of whose nodes end with an error that matches want.
func RunExpecting[T Topology](t *testing.T, n int, place Place, make func(node int, opts ...pool.Option) (T, error), use func(nodes []T), want error) (nodes []T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runMax)
	defer cancel()
	net := newNetwork(n, place)
	for i := range n {
		top, err := make(i, border.UseNodes(net.nodes[i]))
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, top)
	}
	errs := net.run(ctx, func(i int) error { return nodes[i].Run(ctx) }, func() {
		if use != nil {
			use(nodes)
		}
	})
	failed := 0
	for i, err := range errs {
		switch {
		case err == nil:
		case want != nil && errors.Is(err, want):
			failed++
		default:
			t.Errorf("node %d of %d: %v", i+1, n, err)
		}
	}
	if want != nil && failed == 0 {
		t.Errorf("no node ended with the error %v", want)
	}
	if ctx.Err() != nil {
		t.Fatalf("the nodes did not finish in %v", runMax)
	}
	for i, top := range nodes {
		checkFigures(t, i+1, top.Snapshot())
	}
	return nodes
}

// RunCluster makes and runs a topology on the nodes n1, n2 … of package cluster, which connect
// in memory. The topology file must name n of these nodes. In a Bubble the nodes need no time.
func RunCluster[T Topology](t *testing.T, n int, make func(node int, opts ...pool.Option) (T, error), use func(nodes []T)) (nodes []T) {
	t.Helper()
	memory := transport.NewMemory(transport.MemoryOptions{})
	return runNodes(t, n, func(i int) (T, error) {
		joined, err := memory.Join(nodeName(i))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = joined.Close() })
		making.Lock()
		defer making.Unlock()
		return make(i, pool.Node(nodeName(i)), pool.NodeDir(t.TempDir()), piper.NodeTransport(joined))
	}, use)
}

// making is held while a node is made: it reads the addresses from the environment, which all
// tests share.
var making sync.Mutex

// RunLoopback is RunCluster for nodes that listen on loopback, so that clients can connect. Tests
// with it can be parallel.
func RunLoopback[T Topology](t *testing.T, n int, make func(node int, opts ...pool.Option) (T, error), use func(nodes []T, addresses []string)) (nodes []T) {
	t.Helper()
	addresses := loopback.Addresses(t, n)
	return runNodes(t, n, func(i int) (T, error) { return MakeLoopback(t, addresses, i, make) }, func(nodes []T) { use(nodes, addresses) })
}

// MakeLoopback makes a node of RunLoopback, or a node that joins these nodes.
func MakeLoopback[T Topology](t *testing.T, addresses []string, i int, make func(node int, opts ...pool.Option) (T, error)) (T, error) {
	t.Helper()
	var list []string
	for i, address := range addresses {
		list = append(list, nodeName(i)+"="+address)
	}
	opts := []pool.Option{pool.Node(nodeName(i)), pool.NodeDir(t.TempDir())}
	if i >= len(addresses) {
		opts = append(opts, pool.NodeAddress(loopback.Addresses(t, 1)[0]))
	}
	making.Lock()
	defer making.Unlock()
	os.Setenv(cluster.VariableNodes, strings.Join(list, ","))
	defer os.Unsetenv(cluster.VariableNodes)
	return make(i, opts...)
}

// runNodes makes nodes, runs them, and checks their figures.
func runNodes[T Topology](t *testing.T, n int, make func(node int) (T, error), use func(nodes []T)) (nodes []T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runMax)
	defer cancel()
	for i := range n {
		top, err := make(i)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, top)
	}
	var running sync.WaitGroup
	for i, top := range nodes {
		running.Go(func() {
			if err := top.Run(ctx); err != nil {
				t.Errorf("node %s: %v", nodeName(i), err)
			}
		})
	}
	use(nodes)
	running.Wait()
	for i, top := range nodes {
		checkFigures(t, i+1, top.Snapshot())
	}
	return nodes
}

func nodeName(i int) string { return fmt.Sprint("n", i+1) }

// Figures adds up the figures of an edge over all nodes.
func Figures[T Topology](nodes []T, edge int) (sum pool.EdgeFigures) {
	for _, top := range nodes {
		f := top.Snapshot().Edges[edge]
		sum.Sent += f.Sent
		sum.Received += f.Received
		sum.Dropped += f.Dropped
		sum.Arrived += f.Arrived
	}
	return sum
}

func checkFigures(t *testing.T, node int, s pool.Snapshot) {
	t.Helper()
	for _, e := range s.Edges {
		if e.Sent != e.Received+e.Dropped || e.Dropped > e.Sent || e.Len != 0 || e.Waiting != 0 {
			t.Errorf("node %d: the figures of an edge do not add up: %+v", node, e)
		}
	}
}

// run runs all nodes and use. It returns the errors of the nodes.
func (net *network) run(ctx context.Context, one func(i int) error, use func()) []error {
	agreeing, stop := context.WithCancel(ctx)
	var agreement, nodes sync.WaitGroup
	agreement.Go(func() { net.agreeUntil(agreeing) })
	errs := make([]error, len(net.nodes))
	for i := range net.nodes {
		nodes.Go(func() { errs[i] = one(i) })
	}
	use()
	nodes.Wait()
	stop()
	agreement.Wait()
	return errs
}
