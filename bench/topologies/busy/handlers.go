// Package busy has a server that replies to questions of an external processor, while
// pairs of instances keep all workers busy.
package busy

import (
	"context"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Pairs is the number of pairs that exchange balls.
const Pairs = 8

// Question is the request and Answer the reply; Ball is the message of a pair.
type (
	Question struct{ N int }
	Answer   struct{ N int }
	Ball     struct{ Pair int }
)

// Server replies.
type Server struct{}

//go:noinline
func (*Server) ReceiveQuestion(q *Question) Answer { return Answer{q.N + 1} }

// Left and Right exchange balls until the end.
type (
	Left  struct{ over *atomic.Bool }
	Right struct{}
)

//go:noinline
func (l *Left) ReceiveBall(m *Ball, out *LeftSender) {
	if !l.over.Load() {
		out.SendBall(*m)
	}
}

//go:noinline
func (*Right) ReceiveBall(m *Ball, out *RightSender) { out.SendBall(*m) }

// Run asks n questions, one after the other, while all pairs exchange balls.
func Run(n int, options ...pool.Option) error {
	var over atomic.Bool
	topology, err := New(Processors{
		Left: func(topo.Instance) (*Left, error) { return &Left{&over}, nil },
	}, options...)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := range Pairs {
		if err := topology.Serve().SendBall(ctx, Ball{i}); err != nil {
			return err
		}
	}
	topology.Serve().Close()
	ended := make(chan error, 1)
	go func() { ended <- topology.Run(ctx) }()
	for i := range n {
		if _, err = topology.Client().AskQuestion(ctx, Question{i}); err != nil {
			break
		}
	}
	over.Store(true)
	topology.Client().Close()
	if failed := <-ended; failed != nil {
		return failed
	}
	return err
}
