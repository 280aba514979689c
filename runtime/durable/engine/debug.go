package engine

import (
	"context"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

type timeKey struct{}

// WithTime returns a context whose operations are carried out as if it were the given
// time, in milliseconds since 1970 (resonate:debug_time). An engine without Config.Debug
// refuses them with status 403.
func WithTime(ctx context.Context, ms int64) context.Context {
	return context.WithValue(ctx, timeKey{}, &core.Instant{Wall: ms, Run: ms})
}

// timeOf returns the time of [WithTime], or nil.
func timeOf(ctx context.Context) *core.Instant {
	at, _ := ctx.Value(timeKey{}).(*core.Instant)
	return at
}

// instant returns the time of an operation.
func (e *Engine) instant(at *core.Instant) core.Instant {
	if at != nil {
		return *at
	}
	return e.clock.now()
}

// needsDebug reports whether a call is allowed only with Config.Debug.
func needsDebug(c *call) bool {
	if c.at != nil {
		return true
	}
	for _, op := range c.ops {
		switch op.(type) {
		case protocol.DebugStart, protocol.DebugStop, protocol.DebugReset, protocol.DebugSnap, protocol.DebugTick:
			return true
		}
	}
	return false
}

// debug carries out the part of a debug operation that concerns the engine, after its
// commit. It reports whether the call must be carried out again, because more timeouts
// are due.
func (e *Engine) debug(c *call) (again bool) {
	for i, op := range c.ops {
		if c.results[i].Status != protocol.OK {
			continue
		}
		switch op.(type) {
		case protocol.DebugStart:
			e.schedule.paused = true
		case protocol.DebugStop:
			e.schedule.paused = false
		case protocol.DebugTick:
			again = again || c.results[i].More
			e.occurred(c.results[i].Occurrences, c.results[i].Gaps)
		}
	}
	return again
}
