// Package hop has messages go to and fro between two workers.
package hop

import (
	"context"
	"sync"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Ball is what travels.
type Ball struct {
	To   int
	Left int // hops
}

// Node sends each ball to the other node, until it has no hops left.
type Node struct{ stopped *sync.WaitGroup }

//go:noinline
func (n *Node) ReceiveBall(m *Ball, out *NodeSender) {
	if m.Left == 0 {
		n.stopped.Done()
		return
	}
	out.SendBall(Ball{1 - m.To, m.Left - 1})
}

// Run has balls at once make n hops in all.
func Run(n, balls int, options ...pool.Option) error {
	var stopped sync.WaitGroup
	stopped.Add(balls)
	topology, err := New(Processors{
		Node: func(topo.Instance) (*Node, error) { return &Node{&stopped}, nil },
	}, options...)
	if err != nil {
		return err
	}
	ended := make(chan error)
	ctx := context.Background()
	go func() { ended <- topology.Run(ctx) }()
	for i := range balls {
		if err := topology.Serve().SendBall(ctx, Ball{i % 2, n / balls}); err != nil {
			return err
		}
	}
	stopped.Wait()
	topology.Serve().Close()
	return <-ended
}
