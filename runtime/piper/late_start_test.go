package piper_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

// lateStart has an instance that fails and is started again. It returns the number of starts
// and of Close calls of this processor.
func lateStart(t *testing.T, renew func(ctx context.Context) error, other proc) (top *topology, starts, closes *int) {
	starts, closes = new(int), new(int)
	fails := proc{
		watch: &piper.Watch{Attempts: 1},
		ping: func(*cell) error {
			if *starts++; *starts == 1 {
				return errFailed
			}
			return topo.Idle
		},
		renew: renew,
		close: func(*cell) error { *closes++; return nil },
	}
	v := supervise.New(supervise.Spec{Processors: []supervise.Processor{restarted("p0", supervise.OnFailure, 0), {}}})
	return supervised(t, v, []proc{fails, other}, nil), starts, closes
}

// TestAnInstanceThatStartsWhileRunEndsIsClosed has a restart whose Init returns after the
// workers have ended. Close of this instance must be called too.
func TestAnInstanceThatStartsWhileRunEndsIsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		result error // of the other processor
		stop   time.Duration
	}{"error": {errRandom, time.Hour}, "stop": {topo.Done, 20 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.stop)
			defer cancel()
			renew := func(context.Context) error { time.Sleep(100 * time.Millisecond); return nil }
			top, _, closes := lateStart(t, renew, proc{ping: func(*cell) error { time.Sleep(10 * time.Millisecond); return c.result }})
			if err := top.run(t, ctx); (err != nil) != errors.Is(c.result, errRandom) || *closes != 2 {
				t.Errorf("%s: Run returns %v, Close was called %d times for 2 instances", name, err, *closes)
			}
		})
	}
}
