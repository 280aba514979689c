package bind

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

// TestWatched leaves behind what does not end, for each of the reasons.
func TestWatched(t *testing.T) {
	runtime.GC() // what is freed meanwhile is not seen to be taken
	ended, end := context.WithCancel(t.Context())
	end()
	endless := func() int { <-t.Context().Done(); return 0 }
	busy := func() int {
		for t.Context().Err() == nil {
		}
		return 0
	}
	for name, c := range map[string]struct {
		ctx   context.Context
		most  limits
		check func() int
		want  error
	}{
		"in time":   {t.Context(), limitsFor(0), func() int { return 1 }, nil},
		"too long":  {t.Context(), limits{time.Millisecond, 1 << 40}, busy, overrun("more than 1ms")},
		"too large": {t.Context(), limits{time.Hour, 10 << 20}, func() int { return greedy(t.Context(), 200<<20) }, overrun("more than 10 MB of memory")},
		"not asked": {ended, limits{time.Hour, 1 << 40}, endless, context.Canceled},
	} {
		got, err := watched(c.ctx, c.most, c.check)
		if !errors.Is(err, c.want) || err == nil && got != 1 {
			t.Errorf("%s: %d, %v, want %v", name, got, err, c.want)
		}
	}
}

// greedy holds memory until ctx ends.
func greedy(ctx context.Context, bytes int) int {
	held := make([]byte, bytes)
	<-ctx.Done()
	runtime.KeepAlive(&held)
	return 0
}
