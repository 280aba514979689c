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
