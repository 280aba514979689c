// Package ask has a server that replies to questions of an external processor.
package ask

import (
	"context"
	"errors"
	"sync"

	"github.com/topogen/topogen/runtime/pool"
)

//go:generate go tool topogen build

// Question is the request and Answer the reply.
type (
	Question struct{ N int }
	Answer   struct{ N int }
)

// Server replies.
type Server struct{}

//go:noinline
func (*Server) ReceiveQuestion(q *Question) Answer { return Answer{q.N + 1} }

var errAnswer = errors.New("ask: a wrong answer")

// Run asks n questions from several goroutines.
func Run(n, goroutines int, options ...pool.Option) error {
	return RunWith(context.Background(), n, goroutines, options...)
}

// RunWith does the same with the context of each Ask.
func RunWith(ctx context.Context, n, goroutines int, options ...pool.Option) error {
	topology, err := New(Processors{}, options...)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- topology.Run(context.Background()) }()
	var callers sync.WaitGroup
	failed := make(chan error, goroutines)
	for range goroutines {
		callers.Go(func() {
			for i := range n / goroutines {
				answer, err := topology.Client().AskQuestion(ctx, Question{i})
				if err == nil && answer.N != i+1 {
					err = errAnswer
				}
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	callers.Wait()
	topology.Client().Close()
	if err := <-ended; err != nil {
		return err
	}
	if len(failed) > 0 {
		return <-failed
	}
	return nil
}
