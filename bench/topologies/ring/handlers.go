// Package ring passes messages around 10,000 instances.
package ring

import (
	"context"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Instances is the number of nodes.
const Instances = 10_000

// Ball is the message type.
type Ball struct {
	To     int
	Left   int    // hops
	Stride int    // from one node to the next
	_      [5]int // so that a message has 64 bytes
}

// Node passes each ball to the next node.
type Node struct{ stopped chan<- struct{} }

//go:noinline
func (n *Node) ReceiveBall(m *Ball, out *NodeSender) {
	if m.Left == 0 {
		n.stopped <- struct{}{}
		return
	}
	out.SendBall(Ball{To: (m.To + m.Stride) % Instances, Left: m.Left - 1, Stride: m.Stride})
}

// Ring is a topology that runs.
type Ring struct {
	topology *Topology
	stopped  <-chan struct{}
	ended    chan error
}

// Start starts a topology.
func Start(options ...pool.Option) (*Ring, error) {
	stopped := make(chan struct{}, Instances)
	topology, err := New(Processors{
		Node: func(topo.Instance) (*Node, error) { return &Node{stopped}, nil },
	}, options...)
	if err != nil {
		return nil, err
	}
	r := &Ring{topology, stopped, make(chan error, 1)}
	go func() { r.ended <- topology.Run(context.Background()) }()
	return r, nil
}

// Pass sends a ball for a number of hops.
func (r *Ring) Pass(hops, stride int) error {
	if err := r.topology.Door().SendBall(context.Background(), Ball{To: 0, Left: hops, Stride: stride}); err != nil {
		return err
	}
	<-r.stopped
	return nil
}

// Stop ends the topology.
func (r *Ring) Stop() error {
	r.topology.Door().Close()
	return <-r.ended
}
