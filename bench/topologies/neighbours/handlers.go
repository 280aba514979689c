// Package neighbours is package pingpong beside a thousand idle instances.
package neighbours

import (
	"context"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Ball is what travels.
type Ball struct{ Left int } // hops

// Left and Right play; Idle could be reached and never is.
type (
	Left  struct{ end func() } // called when the ball has stopped
	Right struct{}
	Idle  struct{}
)

func (*Idle) ReceiveBall(*Ball) {}

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

// Run has one ball make n hops, or n + 1 to end where it began.
func Run(n int, options ...pool.Option) error {
	var topology *Topology
	topology, err := New(Processors{
		Left: func(topo.Instance) (*Left, error) { return &Left{func() { topology.Serve().Close() }}, nil },
	}, options...)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := topology.Serve().SendBallToLeft(ctx, Ball{n + n%2}); err != nil {
		return err
	}
	return topology.Run(ctx)
}
