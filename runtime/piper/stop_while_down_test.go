package piper_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/supervise"
)

// TestAStopOfAnInstanceWithSeveralEdges stops a topology while the receiver of two edges is
// down, or while its handler runs, which then panics. The failure is in a message of another
// sender, so the link of the two edges handles no message at that time.
func TestAStopOfAnInstanceWithSeveralEdges(t *testing.T) {
	for _, down := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			handled := 0
			procs := []proc{
				{external: true},
				{receive: func(c *cell, m *message) error { // sends along both edges
					if err := c.send(2, 0, message{}); err != nil {
						return err
					}
					return c.send(3, 0, message{})
				}},
				{watch: &piper.Watch{Attempts: 1}, receive: func(_ *cell, m *message) error {
					switch {
					case m.edge != 1:
						handled++
						return nil
					case down:
						time.AfterFunc(time.Second, cancel)
						return errFailed
					}
					cancel()
					synctest.Wait() // until Run has begun to stop
					panic(errFailed)
				}},
			}
			v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{}, {}, {
				Name: "p2", Instances: 1, Supervised: true, Policy: supervise.OnFailure, Delay: 3 * time.Second,
			}}})
			top := supervised(t, v, procs, []edge{{from: 0, to: 1}, {from: 0, to: 2}, {from: 1, to: 2}, {from: 1, to: 2}}, piper.Workers(2))
			in := top.externals[0].caller()
			go func() {
				send := func(edge int) {
					if err := in.send(ctx, edge, 0, message{}); err != nil {
						t.Error(err)
					}
				}
				send(0)
				synctest.Wait()
				send(1)
				if down {
					synctest.Wait()
					send(0) // must be handled after the restart
				}
			}()
			err := top.run(t, ctx)
			if want := map[bool]int{true: 4, false: 2}[down]; err != nil || handled != want || top.pool.Snapshot().Faults.Dropped != 1 {
				t.Errorf("down %v: %d of %d messages were handled, %+v, %v", down, handled, want, top.pool.Snapshot().Faults, err)
			}
			top.check(t, true)
		})
	}
}
