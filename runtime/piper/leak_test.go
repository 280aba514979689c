package piper_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// TestNoGoroutineIsLeft checks that no goroutine is left after any kind of end.
func TestNoGoroutineIsLeft(t *testing.T) {
	for name, ending := range map[string]ending{
		"done": endDone, "stop": endStop, "error": endError, "panic": endPanic, "goexit": endGoexit,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 20; seed++ {
				x := draw(seed, false)
				for i := range x.procs {
					if x.procs[i].external {
						x.procs[i] = proc{} // callers are goroutines of the test
					}
				}
				x.ending, x.endAfter = ending, 10
				ctx, cancel := context.WithCancel(t.Context())
				x.start(t, cancel, piper.Workers(4))
				if err := x.top.run(t, ctx); err != nil && !x.failed.Load() {
					t.Errorf("Run returns %v", err)
				}
				cancel()
			}
			until(t, func() bool { return !strings.Contains(stacks(), methods) })
		})
	}
}

// TestATopologyThatEndedIsCollected has a timer that would fire in an hour.
func TestATopologyThatEndedIsCollected(t *testing.T) {
	collected := make(chan struct{})
	func() {
		top := build(t, []proc{feed(0, 3, 1), {}}, []edge{{from: 0, to: 1}, {from: timer, to: 1, every: time.Hour}})
		runtime.AddCleanup(top.all[1], func(struct{}) { close(collected) }, struct{}{})
		if err := top.run(t, t.Context()); err != nil {
			t.Fatal(err)
		}
	}()
	until(t, func() bool {
		runtime.GC()
		select {
		case <-collected:
			return true
		default:
			return false
		}
	})
}
