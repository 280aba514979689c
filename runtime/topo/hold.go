package topo

import (
	"context"

	"github.com/topogen/topogen/runtime/internal/attempt"
	"github.com/topogen/topogen/runtime/internal/hold"
)

// Hold reports that the instance keeps accepted work for later, such as a job in a map
// that waits for its time. Until release is called, the instance does not finish
// although its inputs are closed and drained, and its timers continue. When the
// topology stops, the instance has the drain timeout to release. Once Finish of the
// instance was called, its timers do not continue.
//
// Any goroutine and any handler may call release; only the first call counts. If the
// instance fails, its holds end: the work is lost with the instance and is counted as
// lost. Outside of a topology Hold has no effect.
//
//	func (l *Limiter) ReceiveJob(ctx context.Context, j Job) {
//		l.waiting = append(l.waiting, held{j, topo.Hold(ctx)})
//	}
func Hold(ctx context.Context) (release func()) { return hold.Begin(ctx) }

// Attempt returns how often the current message was passed to a handler, including this
// call. ctx is the context of the handler. It is 1 for the first attempt and outside of
// a topology.
func Attempt(ctx context.Context) int { return attempt.Of(ctx) }
