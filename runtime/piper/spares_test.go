package piper_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// TestSparesOfEmptyQueues sends a burst, and after a long pause looks at the queue. Its spare segments
// must stay while messages come, and must be dropped in the pause. Then nothing wakes the worker.
func TestSparesOfEmptyQueues(t *testing.T) {
	const burst = 1000
	synctest.Test(t, func(t *testing.T) {
		var top *topology
		began, calls := time.Now(), 0
		kept := func(want bool) {
			if got := piper.KeepsSpares(&top.cells[1][0].Unit); got != want {
				t.Errorf("after %v the queue keeps spare segments: %v", time.Since(began), got)
			}
		}
		top = build(t, []proc{
			{ping: func(c *cell) error {
				if calls++; calls > 1 {
					switch d := time.Since(began); {
					case d < time.Millisecond: // the receiver may not have begun
					case d < 4*time.Second: // a flow with short pauses
						kept(true)
					case d < 8*time.Second:
						return topo.Idle
					default:
						kept(false)
						return topo.Done
					}
				}
				for range burst {
					if err := c.send(0, 0, message{}); err != nil {
						return err
					}
				}
				if calls == 1 {
					return nil
				}
				return topo.Idle
			}},
			{receive: func(*cell, *message) error { return nil }},
		}, []edge{{from: 0, to: 1, capacity: 2 * burst}}, piper.Workers(1))
		top.runWhole(t)
	})
}

// TestSparesOfASlowInstance sends bursts to an instance that leaves the pool because of a long call, and comes
// back when it is idle. Its queue must not keep the spare segments of either burst.
func TestSparesOfASlowInstance(t *testing.T) {
	const burst = 1000
	for name, long := range map[string]int{"in the first burst": burst - 20, "after the first burst": burst + 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var top *topology
				began, sent, received := time.Now(), 0, 0
				top = build(t, []proc{
					{ping: func(c *cell) error {
						d := time.Since(began)
						if d > 8*time.Second {
							if piper.KeepsSpares(&top.cells[1][0].Unit) {
								t.Error("the queue keeps spare segments")
							}
							return topo.Done
						}
						for sent < burst || sent == burst && d > 100*time.Millisecond {
							sent++
							if err := c.send(0, 0, message{}); err != nil {
								return err
							}
						}
						return topo.Idle
					}},
					{receive: func(*cell, *message) error {
						if received++; received == long {
							time.Sleep(40 * time.Millisecond)
						}
						return nil
					}},
				}, []edge{{from: 0, to: 1, capacity: 2 * burst}}, piper.Workers(1), new(journal).option())
				top.runWhole(t)
			})
		})
	}
}
