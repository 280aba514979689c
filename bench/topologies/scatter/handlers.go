// Package scatter has 100 instances, each of which passes balls to random instances.
package scatter

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Instances is the number of nodes, and Balls the number of balls.
const (
	Instances = 100
	Balls     = 1000
)

// Ball is the message type.
type Ball struct {
	To   int
	Left int // hops
}

// Node passes each ball to a random node, until the ball has no hops left.
type Node struct {
	stopped *sync.WaitGroup
	random  *rand.Rand
}

//go:noinline
func (n *Node) ReceiveBall(m *Ball, out *NodeSender) {
	if m.Left == 0 {
		n.stopped.Done()
		return
	}
	out.SendBall(Ball{n.random.IntN(Instances), m.Left - 1})
}

// Run sends all balls, which together make n hops.
func Run(n int, options ...pool.Option) error {
	var stopped sync.WaitGroup
	stopped.Add(Balls)
	topology, err := New(Processors{
		Node: func(i topo.Instance) (*Node, error) {
			return &Node{&stopped, rand.New(rand.NewPCG(uint64(i.Index), 0))}, nil
		},
	}, options...)
	if err != nil {
		return err
	}
	ended := make(chan error)
	ctx := context.Background()
	go func() { ended <- topology.Run(ctx) }()
	for i := range Balls {
		if err := topology.Door().SendBall(ctx, Ball{i % Instances, n / Balls}); err != nil {
			return err
		}
	}
	stopped.Wait()
	topology.Door().Close()
	return <-ended
}
