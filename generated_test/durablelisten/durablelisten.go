// Package durablelisten has a topology whose store other programs use.
package durablelisten

import (
	"context"

	"github.com/topogen/topogen/runtime/durable"
)

type Job struct{ Name string }

type Done struct{ By string }

// Worker does jobs. Held, if it is not nil, is received from before a job is done.
type Worker struct {
	Name string
	Held chan bool
}

func (w *Worker) ReceiveJob(ctx durable.Context, m Job) (Done, error) {
	return durable.Step(ctx, "work", func(c context.Context) (Done, error) {
		if w.Held != nil {
			select {
			case <-w.Held:
			case <-c.Done():
				return Done{}, c.Err()
			}
		}
		return Done{w.Name}, nil
	})
}
