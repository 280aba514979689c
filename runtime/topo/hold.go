package topo

import (
	"context"

	"github.com/topogen/topogen/runtime/internal/attempt"
	"github.com/topogen/topogen/runtime/internal/hold"
)

// Hold says that the instance whose handler was given ctx holds work back, such as
// a job that waits for its time in a map: until release is called, the instance is
// not finished although its inputs are closed and drained, its timers go on, and a
// stop gives it the drain timeout. Once Finish of the instance was called, timers do
// not go on for it any more. Release may be called in any handler and on any
// goroutine, and counts once. An instance that fails holds nothing any more: its
// work is lost with it, which is counted. Outside of a topology Hold does nothing.
//
//	func (l *Limiter) ReceiveJob(ctx context.Context, j Job) {
//		l.waiting = append(l.waiting, held{j, topo.Hold(ctx)})
//	}
func Hold(ctx context.Context) (release func()) { return hold.Begin(ctx) }

// Attempt is how often the message of the handler that was given ctx was handed to a
// handler, this time included: 1 for the first attempt, and outside of a topology.
func Attempt(ctx context.Context) int { return attempt.Of(ctx) }
