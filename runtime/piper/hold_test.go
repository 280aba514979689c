package piper_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

// limiter is a processor that keeps each message in a list and sends one of them at
// each tick.
func limiter(watch *piper.Watch) proc {
	type job struct {
		m       message
		release func()
	}
	return proc{name: "limiter", watch: watch,
		receive: func(c *cell, m *message) error {
			jobs, _ := c.state.([]job)
			c.state = append(jobs, job{*m, topo.Hold(c.ctx)})
			return nil
		},
		tick: func(c *cell, _ topo.Tick) error {
			jobs, _ := c.state.([]job)
			if len(jobs) == 0 {
				return nil
			}
			c.state = jobs[1:]
			err := c.send(2, 0, jobs[0].m)
			jobs[0].release()
			jobs[0].release() // counts once
			return err
		},
		finish: func(c *cell) error {
			if jobs, _ := c.state.([]job); len(jobs) > 0 {
				c.violated("Finish was called while the instance holds %d jobs", len(jobs))
			}
			return nil
		},
	}
}

var limited = []edge{{from: 0, to: 1}, {from: timer, to: 1, every: time.Second}, {from: 1, to: 2}}

// TestHeldWorkIsDone checks that a processor that sends held jobs at ticks does not
// finish before the last job, on workers and under the Stepper, with and without a
// Watch.
func TestHeldWorkIsDone(t *testing.T) {
	for _, watch := range []*piper.Watch{nil, {Attempts: 1}, {Attempts: 1, Timeout: time.Second}} {
		for _, stepped := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				procs := []proc{feed(0, 20, 1), limiter(watch), {}}
				top := supervised(t, onFailure(procs), procs, limited, piper.Workers(1))
				var err error
				if stepped {
					err = top.pool.Stepper(1).Run()
				} else {
					err = top.run(t, t.Context())
				}
				if got := top.graph().Edge(2).Received(); err != nil || got != 20 {
					t.Errorf("stepped %v, %+v: %d of 20 jobs are done, Run returns %v", stepped, watch, got, err)
				}
				top.check(t, true)
			})
		}
	}
}

// TestAStopGivesHeldWorkTheDrainTimeout checks that jobs released within the drain
// timeout are done, and that the error counts the other jobs.
func TestAStopGivesHeldWorkTheDrainTimeout(t *testing.T) {
	for drain, want := range map[time.Duration]error{time.Minute: nil, 5 * time.Second: piper.ErrDrainTimeout} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			procs := []proc{feed(0, 20, 1), limiter(nil), {}}
			procs[1].finish = nil
			top := build(t, procs, limited, piper.DrainTimeout(drain), piper.Workers(1))
			err := top.run(t, ctx)
			done := top.graph().Edge(2).Received()
			if want == nil && (err != nil || done != 20) {
				t.Errorf("%d of 20 jobs are done, %v", done, err)
			}
			if want != nil && (!errors.Is(err, want) || !strings.Contains(err.Error(), `processor "limiter": 13 pieces of work held (topo.Hold)`) || done != 7) {
				t.Errorf("%d of 20 jobs are done, %v", done, err)
			}
		})
	}
}

// TestHoldWhileClosing has a message that is handled after all inputs have closed and
// that holds. The timer must continue, also if only a goroutine outside the pool
// releases.
func TestHoldWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released, ticks := false, 0
		procs := []proc{feed(0, 2, 2), {
			receive: func(c *cell, m *message) error {
				if m.seq == 2 {
					time.Sleep(3 * time.Second) // the feed has finished
					release := topo.Hold(c.ctx)
					time.AfterFunc(5*time.Second, func() { released = true; release() })
				}
				return nil
			},
			tick: func(*cell, topo.Tick) error { ticks++; return nil },
			finish: func(c *cell) error {
				if !released {
					c.violated("Finish was called before the release")
				}
				return nil
			},
		}}
		top := build(t, procs, []edge{{from: 0, to: 1}, {from: timer, to: 1, every: time.Second}}, new(journal).option())
		top.runWhole(t)
		if ticks < 4 {
			t.Errorf("%d ticks", ticks)
		}
	})
}

// TestAnInstanceThatFailsHoldsNothing checks that the holds of an instance that fails
// end and are counted as lost, that Run ends, and that a later release has no effect.
func TestAnInstanceThatFailsHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var releases []func()
		calls := 0
		procs := []proc{feed(0, 10, 1), {watch: &piper.Watch{Attempts: 1}, receive: func(c *cell, _ *message) error {
			if calls++; calls == 5 {
				return errFailed
			}
			release := topo.Hold(c.ctx)
			if calls > 5 {
				release()
			} else {
				releases = append(releases, release)
			}
			return nil
		}}}
		top := supervised(t, onFailure(procs), procs, []edge{{from: 0, to: 1}})
		if err := top.run(t, t.Context()); err != nil {
			t.Errorf("Run returns %v", err)
		}
		if f := top.pool.Snapshot().Faults; f.HoldsLost != 4 || f.Restarts != 1 {
			t.Errorf("%+v", f)
		}
		for _, release := range releases {
			release()
		}
		top.report(t)
	})
}

// TestHoldOutsideATopology checks that Hold has no effect there.
func TestHoldOutsideATopology(t *testing.T) {
	topo.Hold(t.Context())()
	if n := topo.Attempt(t.Context()); n != 1 {
		t.Errorf("attempt %d", n)
	}
}

// TestARetryThatMustYieldIsNotForgotten checks that a message is handled again if the turn of its next attempt
// ends before the attempt, although its queue is empty.
func TestARetryThatMustYieldIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts, drains := 0, 0
		top := build(t, []proc{feed(0, 1, 1), {
			watch: &piper.Watch{Then: piper.ThenRetry, Attempts: 3},
			drains: func(c *cell) {
				if drains++; attempts > 0 && drains == 2 {
					piper.AskToYield(&c.Unit)
				}
			},
			receive: func(c *cell, _ *message) error {
				if attempts++; attempts == 1 {
					c.countLoss(false)
					return errors.New("once")
				}
				return nil
			},
		}}, []edge{{from: 0, to: 1}})
		top.runWhole(t)
		if attempts != 2 || drains < 3 {
			t.Errorf("%d attempts in %d calls of Drain, want 2 in 3", attempts, drains)
		}
	})
}

// TestRetriesWait checks that the delay before each attempt doubles up to the limit.
// Messages behind the delayed message keep their order, messages of another sender are
// not delayed, and the context has the number of the attempt.
func TestRetriesWait(t *testing.T) {
	for _, stepped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var attempts []int
			var at []time.Duration
			var others []time.Duration
			var s *piper.Stepper
			began := time.Now()
			var top *topology
			now := func() time.Duration {
				if s != nil {
					return top.pool.Clock()
				}
				return time.Since(began)
			}
			procs := []proc{feed(0, 3, 1), feed(1, 3, 1), {
				watch: &piper.Watch{Then: piper.ThenRetry, Attempts: 6, Delay: time.Second, MaxDelay: 4 * time.Second},
				receive: func(c *cell, m *message) error {
					if m.origin == 1 {
						others = append(others, now())
						return nil
					}
					if m.seq == 1 {
						attempts, at = append(attempts, topo.Attempt(c.ctx)), append(at, now())
						if len(at) < 6 {
							c.countLoss(false)
							return errFailed
						}
					}
					return nil
				},
			}}
			top = supervised(t, onFailure(procs), procs, []edge{{from: 0, to: 2}, {from: 1, to: 2}}, piper.Workers(1))
			var err error
			if stepped {
				s = top.pool.Stepper(1)
				err = s.Run()
			} else {
				err = top.run(t, t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			want := []time.Duration{0, 1, 3, 7, 11, 15}
			for i, d := range at {
				if d := d.Round(time.Millisecond); d != want[i]*time.Second || attempts[i] != i+1 {
					t.Errorf("stepped %v: attempt %d at %v, want %v", stepped, attempts[i], d, want[i]*time.Second)
				}
			}
			if len(at) != 6 || len(others) != 3 || others[2] > time.Second {
				t.Errorf("stepped %v: attempts at %v, others at %v", stepped, at, others)
			}
			if f := top.pool.Snapshot().Edges[0]; f.Received != 3 {
				t.Errorf("%+v", f)
			}
			top.check(t, true)
		})
	}
}

// TestARetryThatWaitsIsDrained checks that a message that waits for its next attempt is
// handled within the drain timeout. If its instance is not restarted, the message
// becomes a dead letter at once.
func TestARetryThatWaitsIsDrained(t *testing.T) {
	for name, gone := range map[string]bool{"drained": false, "given up": true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			handled, calls := 0, 0
			procs := []proc{{external: true}, {external: true}, {
				watch: &piper.Watch{Then: piper.ThenRetry, Attempts: 2, Delay: 3 * time.Second},
				receive: func(c *cell, m *message) error {
					calls++
					if m.edge == 1 {
						panic("no more")
					}
					if calls == 1 {
						return errFailed
					}
					handled++
					return nil
				},
			}}
			v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{}, {}, {
				Name: "p2", Instances: 1, Supervised: true, Policy: supervise.Always, MaxRestarts: 1,
			}}})
			top := supervised(t, v, procs, []edge{{from: 0, to: 2}, {from: 1, to: 2}}, piper.Workers(1))
			if err := top.externals[0].caller().send(ctx, 0, 0, message{}); err != nil {
				t.Fatal(err)
			}
			if gone {
				time.AfterFunc(100*time.Millisecond, func() {
					if err := top.externals[1].caller().send(ctx, 1, 0, message{}); err != nil {
						t.Error(err)
					}
				})
			}
			began := time.Now()
			err := top.run(t, ctx)
			took := time.Since(began)
			if !gone && (err != nil || handled != 1 || took != 3*time.Second) {
				t.Errorf("%s: handled %d messages after %v, Run returns %v", name, handled, took, err)
			}
			if gone && (!errors.Is(err, piper.ErrGaveUp) || handled != 0 || top.pool.Snapshot().Faults.Dropped != 2) {
				t.Errorf("%s: handled %d messages, Run returns %v, %+v", name, handled, err, top.pool.Snapshot().Faults)
			}
		})
	}
}

// TestTheLogTellsTheAttempt checks that the log has the attempt in which a handler
// failed and, at the end of each second, the number of failures that were not logged.
func TestTheLogTellsTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		procs := []proc{feed(0, 1, 1), {name: "press",
			watch:   &piper.Watch{Then: piper.ThenRetry, Attempts: 5, Delay: 600 * time.Millisecond, MaxDelay: 600 * time.Millisecond},
			receive: func(*cell, *message) error { return errFailed },
		}}
		top, err := constructWith(onFailure(procs), procs, []edge{{from: 0, to: 1}}, log.option())
		if err != nil {
			t.Fatal(err)
		}
		if err := top.run(t, t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"attempt=1\n", "attempt=2\n", "attempt=4 times=2\n", "attempt=5\n"} {
			if log.count(want) != 1 {
				t.Errorf("the log must contain %q, got %s", want, log.buf.String())
			}
		}
	})
}

// TestHoldInInit checks that holds of Init count, at the first start and at a restart.
// An Init that fails or times out must hold nothing.
func TestHoldInInit(t *testing.T) {
	for name, c := range map[string]struct {
		init func(n int, ctx context.Context, forever <-chan struct{}) (release func(), err error)
		lost uint64
	}{
		"holds": {init: func(_ int, ctx context.Context, _ <-chan struct{}) (func(), error) { return topo.Hold(ctx), nil }},
		"fails": {lost: 1, init: func(n int, ctx context.Context, _ <-chan struct{}) (func(), error) {
			release := topo.Hold(ctx)
			if n == 1 {
				return nil, errFailed
			}
			return release, nil
		}},
		"hangs": {init: func(n int, ctx context.Context, forever <-chan struct{}) (func(), error) {
			if n == 1 {
				<-ctx.Done()
				topo.Hold(ctx)
				<-forever
				return nil, errFailed
			}
			return topo.Hold(ctx), nil
		}},
	} {
		for _, failing := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				forever := make(chan struct{})
				inits, fails := 0, failing
				procs := []proc{feed(0, 1, 1), {
					watch: &piper.Watch{Attempts: 2, Startup: 10 * time.Millisecond},
					init: func(cell *cell, ctx context.Context) error {
						inits++
						if ctx == nil { // a body made by Renew: make has already called Init
							return nil
						}
						release, err := c.init(inits, ctx, forever)
						if release != nil {
							time.AfterFunc(3*time.Second, release)
						}
						return err
					},
					renew: func(ctx context.Context) error {
						inits++
						release, err := c.init(inits, ctx, forever)
						if release != nil {
							time.AfterFunc(3*time.Second, release)
						}
						return err
					},
					receive: func(*cell, *message) error {
						if fails {
							fails = false
							return errFailed
						}
						return nil
					},
				}}
				top := supervised(t, onFailure(procs), procs, []edge{{from: 0, to: 1}}, piper.Workers(1))
				began := time.Now()
				err := top.run(t, t.Context())
				if took := time.Since(began); err != nil || took < 3*time.Second || took > 4*time.Second {
					t.Errorf("%s, failing %v: after %v Run returns %v", name, failing, took, err)
				}
				lost := c.lost
				if failing {
					lost++ // the hold of the instance that fails later
				}
				if f := top.pool.Snapshot().Faults; f.HoldsLost != lost {
					t.Errorf("%s, failing %v: %+v", name, failing, f)
				}
				close(forever)
				synctest.Wait()
			})
		}
	}
}

// TestTimersCloseWhenNothingIsHeld checks that an instance gets the event of its closed
// timer after the last tick, also if a message holds that was queued when the inputs
// closed.
func TestTimersCloseWhenNothingIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := limiter(nil)
		ticks, late, closed := 0, 0, false
		limit.events = true
		limit.event = func(_ *cell, what string) error {
			closed = closed || what == "{0 1}" // the timer
			return nil
		}
		tick := limit.tick
		limit.tick = func(c *cell, t topo.Tick) error {
			if ticks++; closed {
				late++
			}
			return tick(c, t)
		}
		top := build(t, []proc{feed(0, 20, 20), limit, {}}, limited)
		top.runWhole(t)
		if !closed || late > 0 || ticks < 20 {
			t.Errorf("%d ticks, %d of them after the timer was closed: %v", ticks, late, closed)
		}
	})
}
