// Package pingpong sends one message back and forth between two instances.
package pingpong

import (
	"context"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Ball is the message type.
type Ball struct{ Left int } // hops

// Left and Right exchange the ball.
type (
	Left  struct{ end func() } // called at the last hop
	Right struct{}
)

//go:noinline
func (l *Left) ReceiveBall(m *Ball, out *LeftSender) {
	if m.Left <= 0 {
		l.end()
		return
	}
	out.SendBall(Ball{m.Left - 1})
}

//go:noinline
func (*Right) ReceiveBall(m *Ball, out *RightSender) {
	out.SendBall(Ball{m.Left - 1})
}

// Run sends one ball for n hops, or n + 1 so that it ends where it began.
func Run(n int, options ...pool.Option) error {
	var topology *Topology
	topology, err := New(Processors{
		Left: func(topo.Instance) (*Left, error) { return &Left{func() { topology.Serve().Close() }}, nil },
	}, options...)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := topology.Serve().SendBall(ctx, Ball{n + n%2}); err != nil {
		return err
	}
	return topology.Run(ctx)
}
