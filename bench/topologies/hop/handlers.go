// Package hop sends messages back and forth between two workers.
package hop

import (
	"context"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Ball is the message type.
type Ball struct {
	To   int
	Left int   // hops
	Sent int64 // time of the send in nanoseconds; 0: the hop is not timed
}

// Node sends each ball to the other node, until it has no hops left.
type Node struct {
	stopped *sync.WaitGroup
	every   int // every every-th hop is timed; 0: none
	began   time.Time
	took    []float64 // nanoseconds
}

//go:noinline
func (n *Node) ReceiveBall(m *Ball, out *NodeSender) {
	if m.Sent != 0 {
		n.took = append(n.took, float64(int64(time.Since(n.began))-m.Sent))
	}
	if m.Left == 0 {
		n.stopped.Done()
		return
	}
	sent := int64(0)
	if n.every != 0 && m.Left%n.every == 0 {
		sent = int64(time.Since(n.began))
	}
	out.SendBall(Ball{1 - m.To, m.Left - 1, sent})
}

// Run sends balls, which together make n hops.
func Run(n, balls int, options ...pool.Option) error {
	_, err := Timed(n, balls, 0, options...)
	return err
}

// Timed works like Run and returns the times of every every-th hop in nanoseconds.
func Timed(n, balls, every int, options ...pool.Option) ([]float64, error) {
	room, began := 0, time.Now()
	if every != 0 {
		room = n/every + balls
	}
	var stopped sync.WaitGroup
	stopped.Add(balls)
	topology, err := New(Processors{
		Node: func(topo.Instance) (*Node, error) {
			return &Node{&stopped, every, began, make([]float64, 0, room)}, nil
		},
	}, options...)
	if err != nil {
		return nil, err
	}
	ended := make(chan error)
	ctx := context.Background()
	go func() { ended <- topology.Run(ctx) }()
	for i := range balls {
		if err := topology.Serve().SendBall(ctx, Ball{i % 2, n / balls, 0}); err != nil {
			return nil, err
		}
	}
	stopped.Wait()
	topology.Serve().Close()
	err = <-ended
	return append(topology.Node(0).took, topology.Node(1).took...), err
}
