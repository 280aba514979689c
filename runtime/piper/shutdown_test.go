package piper_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

// TestASiblingThatHangsIsAbandoned has a one-for-all group: one instance fails, and the
// other is in a call that does not return. After the shutdown timeout the call must be
// abandoned and both instances restarted, without a health timeout.
func TestASiblingThatHangsIsAbandoned(t *testing.T) {
	for _, blocking := range []bool{false, true} {
		for _, stepped := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				forever := make(chan struct{})
				var hung, failed, canceled atomic.Bool
				var hang func()
				watch := &piper.Watch{Attempts: 2, Shutdown: 5 * time.Second}
				procs := []proc{
					feed(0, 3, 1),
					{name: "hangs", blocking: blocking, watch: watch, receive: func(c *cell, _ *message) error {
						if hung.Load() {
							return nil
						}
						hung.Store(true)
						c.countLoss(true)
						c.body.left = true
						c.past.hung.Add(1)
						if hang != nil {
							hang()
						}
						ctx := c.ctx
						<-ctx.Done()
						canceled.Store(context.Cause(ctx) != nil)
						<-forever
						return nil
					}},
					{name: "fails", watch: watch, ping: func(c *cell) error {
						switch {
						case hung.Load() && !failed.Load():
							failed.Store(true)
							return errFailed
						case failed.Load():
							return topo.Done
						}
						return topo.Idle
					}},
				}
				v := supervise.New(supervise.Spec{
					Processors: []supervise.Processor{{},
						{Name: "hangs", Instances: 1, Supervised: true, Policy: supervise.OnFailure},
						{Name: "fails", Instances: 1, Supervised: true, Policy: supervise.OnFailure}},
					Groups: []supervise.Group{{Name: "g", Processors: []int{1, 2}, Strategy: supervise.OneForAll}},
				})
				top := supervised(t, v, procs, []edge{{from: 0, to: 1}}, piper.Workers(1))
				began := time.Now()
				var err error
				if stepped {
					s := top.pool.Stepper(1)
					hang = s.Hang
					err = s.Run()
				} else {
					err = top.run(t, t.Context())
					if took := time.Since(began); took < 5*time.Second || took > 6*time.Second {
						t.Errorf("blocking %v: Run takes %v", blocking, took)
					}
				}
				if err != nil {
					t.Errorf("Run returns %v", err)
				}
				if f := top.pool.Snapshot(); f.Faults.Restarts != 2 || f.Faults.Abandoned != 1 || f.Edges[0].Received != 3 {
					t.Errorf("blocking %v, stepped %v: %+v, %+v", blocking, stepped, *f.Faults, f.Edges[0])
				}
				close(forever)
				synctest.Wait()
				if !canceled.Load() && !stepped {
					t.Error("the context of the abandoned call has not ended")
				}
				top.report(t)
			})
		}
	}
}

// TestASiblingWhoseCloseHangs checks that a Close that hangs does not delay the restart
// of its group.
func TestASiblingWhoseCloseHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		var closes atomic.Int32
		fails := true
		watch := &piper.Watch{Attempts: 1, Shutdown: time.Second}
		procs := []proc{
			{name: "slow", watch: watch, ping: func(c *cell) error {
				if fails {
					return topo.Idle
				}
				return topo.Done
			}, close: func(*cell) error {
				if closes.Add(1) == 1 {
					<-forever
				}
				return nil
			}},
			{name: "fails", watch: watch, ping: func(*cell) error {
				if fails {
					fails = false
					return errFailed
				}
				return topo.Done
			}},
		}
		v := supervise.New(supervise.Spec{
			Processors: []supervise.Processor{
				{Name: "slow", Instances: 1, Supervised: true, Policy: supervise.OnFailure},
				{Name: "fails", Instances: 1, Supervised: true, Policy: supervise.OnFailure}},
			Groups: []supervise.Group{{Name: "g", Processors: []int{0, 1}, Strategy: supervise.OneForAll}},
		})
		top := supervised(t, v, procs, nil, piper.Workers(1), piper.DrainTimeout(3*time.Second))
		began := time.Now()
		if err := top.run(t, t.Context()); err != nil {
			t.Errorf("Run returns %v", err)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("Run takes %v", took)
		}
		if f := top.pool.Snapshot().Faults; f.Restarts != 2 {
			t.Errorf("%+v", f)
		}
		close(forever)
	})
}
