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

// endings runs a topology on workers and under the Stepper. It passes the topology and the result
// of Run to check. Unless stop is 0, it stops the topology after this time.
func endings(t *testing.T, stop time.Duration, make func() *topology, check func(t *testing.T, top *topology, err error)) {
	t.Helper()
	t.Run("workers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			top := make()
			if stop > 0 {
				time.AfterFunc(stop, cancel)
			}
			check(t, top, top.run(t, ctx))
		})
	})
	t.Run("stepper", func(t *testing.T) {
		top := make()
		s := top.pool.Stepper(1)
		if stop > 0 {
			if err := s.Advance(stop); err != nil {
				t.Fatal(err)
			}
			s.Stop()
		}
		check(t, top, s.Run())
	})
}

func restarted(name string, policy supervise.Policy, delay time.Duration) supervise.Processor {
	return supervise.Processor{Name: name, Instances: 1, Supervised: true, Policy: policy, Delay: delay}
}

// lastFails is a processor whose handler fails with the last of a number of messages.
func lastFails(messages int) proc {
	calls := 0
	return proc{watch: &piper.Watch{Attempts: 1}, receive: func(*cell, *message) error {
		if calls++; calls == messages {
			return errFailed
		}
		return nil
	}}
}

// TestFinishAfterAFailureWithTheLastMessage has a handler that fails with the last message, so
// that only Finish is left. The next instance must get Finish, whatever the delay is.
func TestFinishAfterAFailureWithTheLastMessage(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Minute} {
		finished := 0
		endings(t, 0, func() *topology {
			finished = 0
			last := lastFails(10)
			last.finish = func(c *cell) error { finished++; return nil }
			v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{}, restarted("p1", supervise.OnFailure, delay)}})
			return supervised(t, v, []proc{feed(0, 10, 1), last}, []edge{{from: 0, to: 1}})
		}, func(t *testing.T, top *topology, err error) {
			if f := top.pool.Snapshot().Faults; err != nil || finished != 1 || f.Restarts != 1 || f.Dropped != 1 {
				t.Errorf("delay %v: Run returns %v, Finish was called %d times, %+v", delay, err, finished, f)
			}
			top.check(t, true)
		})
	}
}

// TestFinishThatCannotBeCalled has an instance that fails with the last message and cannot be
// started again. Run must return an error.
func TestFinishThatCannotBeCalled(t *testing.T) {
	endings(t, 0, func() *topology {
		last := lastFails(10)
		last.finish = func(c *cell) error { t.Error("Finish was called"); return nil }
		last.make = func(*cell, int) error { return errRandom }
		p := restarted("p1", supervise.OnFailure, 0)
		p.MaxRestarts = 3
		return supervised(t, supervise.New(supervise.Spec{Processors: []supervise.Processor{{}, p}}), []proc{feed(0, 10, 1), last}, []edge{{from: 0, to: 1}})
	}, func(t *testing.T, top *topology, err error) {
		if f := top.pool.Snapshot().Faults; !errors.Is(err, piper.ErrGaveUp) || !errors.Is(err, errRandom) || f.GaveUp != 1 {
			t.Errorf("Run returns %v, %+v", err, f)
		}
	})
}

// TestFinishOfAMemberThatIsIdle has a restart group whose member fails with the last message.
// The other member is healthy, and its only sender is the member that fails. The healthy member
// is stopped for the restart of the group. Then it must get Finish. If its policy never starts it
// again, Run must return an error.
func TestFinishOfAMemberThatIsIdle(t *testing.T) {
	for _, policy := range []supervise.Policy{supervise.OnFailure, supervise.Always, supervise.Never} {
		for _, finishes := range []bool{true, false} { // whether the member that fails has Finish
			finished := 0
			endings(t, 0, func() *topology {
				finished = 0
				last, idle := lastFails(10), proc{watch: &piper.Watch{Attempts: 1}, finish: func(*cell) error { finished++; return nil }}
				if finishes {
					last.finish = func(*cell) error { return nil }
				}
				v := supervise.New(supervise.Spec{
					Processors: []supervise.Processor{{}, restarted("p1", supervise.OnFailure, 0), restarted("p2", policy, 0)},
					Groups:     []supervise.Group{{Name: "g", Processors: []int{1, 2}, Strategy: supervise.OneForAll}},
				})
				return supervised(t, v, []proc{feed(0, 10, 1), last, idle}, []edge{{from: 0, to: 1}, {from: 1, to: 2}})
			}, func(t *testing.T, top *topology, err error) {
				f := top.pool.Snapshot().Faults
				if policy == supervise.Never {
					if !errors.Is(err, piper.ErrGaveUp) || finished != 0 || f.GaveUp != 1 {
						t.Errorf("policy %d: Run returns %v, Finish was called %d times, %+v", policy, err, finished, f)
					}
				} else if err != nil || finished != 1 || f.GaveUp != 0 {
					t.Errorf("policy %d: Run returns %v, Finish was called %d times, %+v", policy, err, finished, f)
				}
				top.check(t, true)
			})
		}
	}
}

// TestFinishOfAMemberWhoseInputsEnd has a restart group whose member fails while the other member,
// which is healthy, handles its last message. So the healthy member reads the command to stop after
// its inputs have ended. It must get Finish, and Run must return nil.
func TestFinishOfAMemberWhoseInputsEnd(t *testing.T) {
	for _, policy := range []supervise.Policy{supervise.OnFailure, supervise.Always, supervise.Never} {
		synctest.Test(t, func(t *testing.T) {
			finished, attempts, failures := 0, 0, 0
			fails := proc{watch: &piper.Watch{Attempts: 1}, blocking: true, receive: func(*cell, *message) error {
				if failures++; failures > 1 {
					return nil
				}
				time.Sleep(2 * time.Second)
				return errFailed
			}}
			healthy := proc{
				watch: &piper.Watch{Then: piper.ThenRetry, Attempts: 2, Delay: time.Second}, blocking: true,
				receive: func(*cell, *message) error {
					if attempts++; attempts == 1 {
						return errFailed // so the inputs are closed before the second attempt
					}
					time.Sleep(2 * time.Second)
					return nil
				},
				finish: func(*cell) error { finished++; return nil },
			}
			source := proc{ping: func(c *cell) error { return errors.Join(c.send(0, 0, message{}), c.send(1, 0, message{}), topo.Done) }}
			v := supervise.New(supervise.Spec{
				Processors: []supervise.Processor{{}, restarted("p1", supervise.OnFailure, 0), restarted("p2", policy, 0)},
				Groups:     []supervise.Group{{Name: "g", Processors: []int{1, 2}, Strategy: supervise.OneForAll}},
			})
			top := supervised(t, v, []proc{source, fails, healthy}, []edge{{from: 0, to: 1}, {from: 0, to: 2}}, piper.Workers(2))
			err := top.run(t, t.Context())
			f := top.pool.Snapshot().Faults
			if err != nil || finished != 1 || attempts != 2 || failures != 1 || f.GaveUp != 0 {
				t.Errorf("policy %d: Run returns %v, Finish was called %d times, %+v", policy, err, finished, f)
			}
			top.check(t, true)
		})
	}
}

// TestFinishWithinACycleAfterAFailure has a cycle of two processors. The one without Finish fails
// with the last message. It must still handle the message that Finish of the other one sends.
func TestFinishWithinACycleAfterAFailure(t *testing.T) {
	handled := 0
	endings(t, 0, func() *topology {
		handled = 0
		last := lastFails(10)
		first := last.receive
		last.receive = func(c *cell, m *message) error { handled++; return first(c, m) }
		procs := []proc{feed(0, 10, 1), last, {finish: func(c *cell) error { return c.send(2, 0, message{}) }}}
		v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{}, restarted("p1", supervise.OnFailure, time.Second), {}}})
		return supervised(t, v, procs, []edge{{from: 0, to: 1}, {from: 1, to: 2}, {from: 2, to: 1}})
	}, func(t *testing.T, top *topology, err error) {
		if err != nil || handled != 11 {
			t.Errorf("Run returns %v, %d of 11 messages were handled", err, handled)
		}
		top.check(t, true)
	})
}

// TestFinishOfASourceThatIsDown stops a topology while a source waits for its restart. The
// source must not send again, but must get Finish.
func TestFinishOfASourceThatIsDown(t *testing.T) {
	for name, c := range map[string]struct {
		policy supervise.Policy
		result error // of Ping
	}{
		"failed": {supervise.OnFailure, errFailed},
		"ended":  {supervise.Always, topo.Done},
	} {
		pings, finished := 0, 0
		endings(t, time.Second, func() *topology {
			pings, finished = 0, 0
			procs := []proc{{
				watch:  &piper.Watch{Attempts: 1},
				ping:   func(*cell) error { pings++; return c.result },
				finish: func(c *cell) error { finished++; return c.send(0, 0, message{}) },
			}, {}}
			v := supervise.New(supervise.Spec{Processors: []supervise.Processor{restarted("p0", c.policy, 5*time.Second), {}}})
			return supervised(t, v, procs, []edge{{from: 0, to: 1}})
		}, func(t *testing.T, top *topology, err error) {
			if err != nil || pings != 1 || finished != 1 {
				t.Errorf("%s: Run returns %v, Ping was called %d times, Finish %d times", name, err, pings, finished)
			}
			top.check(t, true)
		})
	}
}

// TestFinishOfASourceThatFailsAtTheStop has a source that fails after the topology was stopped.
// The next instance must get Finish, as if the source had failed just before.
func TestFinishOfASourceThatFailsAtTheStop(t *testing.T) {
	starts := 0
	for name, p := range map[string]proc{
		"Serve": {serve: func(_ *cell, ctx context.Context) error { starts++; <-ctx.Done(); return errFailed }},
		"Ping":  {blocking: true, ping: func(*cell) error { starts++; time.Sleep(2 * time.Second); return errFailed }},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			finished := 0
			starts = 0
			p.watch, p.finish = &piper.Watch{Attempts: 1}, func(*cell) error { finished++; return nil }
			top := supervised(t, supervise.New(supervise.Spec{Processors: []supervise.Processor{restarted("p0", supervise.OnFailure, time.Second)}}), []proc{p}, nil)
			err := top.run(t, ctx)
			if f := top.pool.Snapshot().Faults; err != nil || starts != 1 || finished != 1 || f.Restarts != 1 {
				t.Errorf("%s: Run returns %v, it was called %d times, Finish %d times, %+v", name, err, starts, finished, f)
			}
			top.check(t, true)
		})
	}
}

// TestASourceWithoutFinishThatFailsAtTheStop has a source that fails after the topology was
// stopped. A new instance would have nothing to do, so the source is given up.
func TestASourceWithoutFinishThatFailsAtTheStop(t *testing.T) {
	for name, p := range map[string]proc{
		"Serve": {serve: func(_ *cell, ctx context.Context) error { <-ctx.Done(); return errFailed }},
		"Ping":  {blocking: true, ping: func(*cell) error { time.Sleep(2 * time.Second); return errFailed }},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			p.watch = &piper.Watch{Attempts: 1}
			top := supervised(t, supervise.New(supervise.Spec{Processors: []supervise.Processor{restarted("p0", supervise.OnFailure, time.Second)}}), []proc{p}, nil)
			err := top.run(t, ctx)
			if f := top.pool.Snapshot().Faults; !errors.Is(err, piper.ErrGaveUp) || !errors.Is(err, errFailed) || f.GaveUp != 1 || f.Restarts != 0 {
				t.Errorf("%s: Run returns %v, %+v", name, err, f)
			}
		})
	}
}

// TestASourceThatEndsAtTheStopIsNotReplaced stops a source with the policy always. The running
// instance must get Finish, without a restart.
func TestASourceThatEndsAtTheStopIsNotReplaced(t *testing.T) {
	for name, p := range map[string]proc{
		"Serve": {serve: func(_ *cell, ctx context.Context) error { <-ctx.Done(); return nil }},
		"Ping":  {ping: func(*cell) error { return topo.Idle }},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			finished := 0
			p.watch, p.finish = &piper.Watch{Attempts: 1}, func(*cell) error { finished++; return nil }
			top := supervised(t, supervise.New(supervise.Spec{Processors: []supervise.Processor{restarted("p0", supervise.Always, time.Hour)}}), []proc{p}, nil)
			began := time.Now()
			err := top.run(t, ctx)
			if f := top.pool.Snapshot().Faults; err != nil || finished != 1 || f.Restarts != 0 || time.Since(began) > 2*time.Second {
				t.Errorf("%s: after %v Run returns %v, Finish was called %d times, %+v", name, time.Since(began), err, finished, f)
			}
			top.check(t, true)
		})
	}
}

// TestAFinishThatWaitsForARestartIsReported has a restart whose delay is longer than the drain
// timeout. The error of Run must name the instance.
func TestAFinishThatWaitsForARestartIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		last := lastFails(1)
		last.finish = func(*cell) error { return nil }
		v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{}, restarted("p1", supervise.OnFailure, time.Hour)}})
		top := supervised(t, v, []proc{feed(0, 1, 1), last}, []edge{{from: 0, to: 1}}, piper.DrainTimeout(3*time.Second))
		err := top.run(t, ctx)
		if !errors.Is(err, piper.ErrDrainTimeout) || !strings.Contains(err.Error(), `processor "p1", instance 0: Finish waits for a restart`) {
			t.Errorf("Run returns %v", err)
		}
	})
}
