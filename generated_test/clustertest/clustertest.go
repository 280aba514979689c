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
// The nodes of Run are piper.Nodes that pass messages on in memory. They have no failure
// detection, resend nothing, and know the placement from the test. RunCluster runs nodes of
// package cluster, which connect over loopback. It is slower, and its placement is not known.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/pool"
)

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
		top, err := make(i, piper.UseNodes(net.nodes[i]))
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

// RunCluster makes and runs a topology on the nodes n1, n2 … of package cluster. The topology
// file must name n of these nodes.
func RunCluster[T Topology](t *testing.T, n int, make func(node int, opts ...pool.Option) (T, error), use func(nodes []T)) (nodes []T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runMax)
	defer cancel()
	t.Setenv(cluster.VariableNodes, freeAddresses(t, n))
	for i := range n {
		top, err := make(i, pool.Node(nodeName(i)), pool.NodeDir(t.TempDir()))
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

// freeAddresses lists the nodes with loopback addresses whose ports were free.
func freeAddresses(t *testing.T, n int) string {
	t.Helper()
	var list []string
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		list = append(list, nodeName(i)+"="+l.Addr().String())
	}
	return strings.Join(list, ",")
}

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
