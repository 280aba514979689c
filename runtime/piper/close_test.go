package piper_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

// TestARestartDoesNotWaitForCloseThatHangs lets three instances fail whose Close hangs.
// They must be restarted at once, and the startup timeout must cover only the
// constructor and Init.
func TestARestartDoesNotWaitForCloseThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		forever := make(chan struct{})
		calls, handled := 0, 0
		procs := []proc{
			feed(0, 10, 1),
			{name: "press", watch: &piper.Watch{Attempts: 2, Startup: 10 * time.Millisecond},
				receive: func(*cell, *message) error {
					if calls++; calls%2 == 1 && calls < 6 {
						return errFailed
					}
					handled++
					return nil
				},
				close: func(*cell) error { <-forever; return nil },
			},
		}
		v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{}, {
			Name: "press", Instances: 1, Supervised: true, Policy: supervise.OnFailure, MaxRestarts: 3,
		}}})
		top, err := constructWith(v, procs, []edge{{from: 0, to: 1}}, log.option(), piper.DrainTimeout(3*time.Second), piper.Workers(1))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = top.run(t, t.Context())
		if handled != 10 || !errors.Is(err, piper.ErrCloseHangs) {
			t.Errorf("%d messages were handled; Run returns %v", handled, err)
		}
		if e, ok := errors.AsType[*piper.HandlerError](err); !ok || e.Method != "Close" || e.Processor != "press" {
			t.Errorf("Run returns %v", err)
		}
		if took := time.Since(began); took > 7*time.Second { // grace periods of three restarts, and the final Close
			t.Errorf("Run takes %v", took)
		}
		if f := top.pool.Snapshot().Faults; f.Restarts != 3 || f.Abandoned != 4 || f.HealthCheckKills != 0 {
			t.Errorf("%+v", f)
		}
		if log.count("Close has not returned in time") == 0 {
			t.Errorf("logged: %s", log.buf.String())
		}
		close(forever)
		synctest.Wait()
		top.report(t)
	})
}

// TestCloseBeforeARestart checks that a Close that is shorter than the grace period
// returns before the next instance is made, because both may use the same file.
func TestCloseBeforeARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		open.Store(1)
		failed := false
		procs := []proc{
			feed(0, 10, 1),
			{watch: &piper.Watch{Attempts: 2},
				receive: func(*cell, *message) error {
					if !failed {
						failed = true
						return errFailed
					}
					return nil
				},
				close: func(*cell) error { time.Sleep(50 * time.Millisecond); open.Add(-1); return errFailed },
				make: func(*cell, int) error {
					if n := open.Add(1); n != 1 {
						t.Errorf("%d instances are open", n)
					}
					return nil
				},
			},
		}
		var log journal
		top, err := constructWith(onFailure(procs), procs, []edge{{from: 0, to: 1}}, log.option())
		if err != nil {
			t.Fatal(err)
		}
		if err := top.run(t, t.Context()); !errors.Is(err, errFailed) || open.Load() != 0 {
			t.Errorf("%d are open; Run returns %v", open.Load(), err)
		}
		if log.count("Close failed for an instance that has ended") != 1 {
			t.Errorf("logged: %s", log.buf.String())
		}
	})
}

// TestCloseThatHangsAtTheEnd checks that Run returns although Close of an instance
// hangs, and that all other instances are closed, in reverse order while there is time.
func TestCloseThatHangsAtTheEnd(t *testing.T) {
	for hanging, limit := range map[int]time.Duration{1: 3 * time.Second, 5: 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			forever := make(chan struct{})
			var closed atomic.Int32
			procs := []proc{
				{instances: 10, close: func(*cell) error { closed.Add(1); return nil }},
				{name: "hangs", instances: hanging, close: func(*cell) error { <-forever; return nil }},
				{name: "exits", close: func(*cell) error { closed.Add(1); runtime.Goexit(); return nil }},
				{name: "panics", close: func(*cell) error { closed.Add(1); panic(errFailed) }},
			}
			top := build(t, procs, nil, piper.DrainTimeout(3*time.Second))
			began := time.Now()
			err := top.pool.Run(t.Context())
			if took := time.Since(began); took > limit || closed.Load() != 12 {
				t.Errorf("%d of 12 instances are closed after %v", closed.Load(), took)
			}
			if !errors.Is(err, piper.ErrCloseHangs) || !errors.Is(err, errFailed) || !strings.Contains(err.Error(), "runtime.Goexit") {
				t.Errorf("Run returns %v", err)
			}
			close(forever)
		})
	}
}

// TestTheFirstInitIsBounded checks that the startup timeout also limits the first Init.
func TestTheFirstInitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		inits, handled := 0, 0
		procs := []proc{
			feed(0, 10, 1),
			{name: "slow", watch: &piper.Watch{Attempts: 1, Startup: time.Second},
				init: func(_ *cell, ctx context.Context) error {
					if inits++; inits == 1 {
						<-ctx.Done() // ends after the startup timeout
						<-forever
					}
					return nil
				},
				receive: func(*cell, *message) error { handled++; return nil },
			},
		}
		top := supervised(t, onFailure(procs), procs, []edge{{from: 0, to: 1}})
		began := time.Now()
		if err := top.run(t, t.Context()); err != nil || handled != 10 {
			t.Errorf("%d messages were handled; Run returns %v", handled, err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Run takes %v", took)
		}
		if f := top.pool.Snapshot().Faults; f.Restarts != 1 || f.HealthCheckKills != 1 || f.Abandoned != 1 {
			t.Errorf("%+v", f)
		}
		close(forever)
		synctest.Wait()
	})
}

// TestInitThatNeverReturns has an Init that ignores its context. Run must return soon
// after the drain timeout, with an error that names the instance.
func TestInitThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		closed := false
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		top := build(t, []proc{
			{close: func(*cell) error { closed = true; return nil }},
			{name: "slow", init: func(*cell, context.Context) error { <-forever; return nil }},
		}, nil, piper.DrainTimeout(3*time.Second))
		began := time.Now()
		err := top.pool.Run(ctx)
		var e *piper.HandlerError
		if took := time.Since(began); took > 6*time.Second || !closed || !errors.Is(err, piper.ErrDrainTimeout) || !errors.As(err, &e) || e.Processor != "slow" || e.Method != "Init" {
			t.Errorf("after %v Run returns %v; closed %v", took, err, closed)
		}
		close(forever)
	})
}

// TestManyFailuresAreSummed checks that, if thousands of instances fail, Run returns
// some of the errors and the number of the others, and logs one line a second.
func TestManyFailuresAreSummed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		instances := speed.Pick(t, 500, 5000, 5000)
		procs := []proc{{
			name: "feed", instances: instances, watch: &piper.Watch{Attempts: 1},
			ping:  func(c *cell) error { panic(fmt.Errorf("instance %d: %w", c.number, errFailed)) },
			close: func(*cell) error { return errors.New("cannot be closed") },
		}}
		v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{
			Name: "feed", Instances: instances, Supervised: true, Policy: supervise.OnFailure, MaxRestarts: 2, Delay: 3 * time.Second, MaxDelay: 3 * time.Second,
		}}})
		top, err := constructWith(v, procs, nil, log.option())
		if err != nil {
			t.Fatal(err)
		}
		err = top.pool.Run(t.Context())
		if !errors.Is(err, piper.ErrGaveUp) || !errors.Is(err, errFailed) {
			t.Errorf("Run returns %v", err)
		}
		text := err.Error()
		if n := strings.Count(text, "\n"); n > 2000 || !strings.Contains(text, fmt.Sprintf("and %d more instances that were given up", instances-16)) {
			t.Errorf("the error has %d lines: %.3000s", n, text)
		}
		if n := log.count("\n"); n > 20 {
			t.Errorf("%d lines are logged", n)
		}
		if n := log.count("times="); n < 2 {
			t.Errorf("the log must contain the number of failures, got %.3000s", log.buf.String())
		}
	})
}

// TestNobodyWaitsWhenErrorsCannotBeRecorded checks that Run fails if the recorder
// cannot be opened, and that calls of Ask and sends that wait return.
func TestNobodyWaitsWhenErrorsCannotBeRecorded(t *testing.T) {
	for name, open := range map[string]func() (piper.Recorder, error){
		"an error": func() (piper.Recorder, error) { return nil, errFailed },
		"a panic":  func() (piper.Recorder, error) { panic(errFailed) },
	} {
		synctest.Test(t, func(t *testing.T) {
			top := build(t, []proc{{external: true}, {}}, []edge{{from: 0, to: 1, capacity: 1}}, piper.Record(open))
			askErr, sent := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := top.externals[0].caller().ask(t.Context(), 0, 0, 0, message{})
				askErr <- err
			}()
			synctest.Wait()
			go func() { sent <- top.externals[0].caller().send(t.Context(), 0, 0, message{}) }()
			synctest.Wait()
			if err := top.pool.Run(t.Context()); !errors.Is(err, errFailed) {
				t.Errorf("%s: Run returns %v", name, err)
			}
			if err := <-askErr; !errors.Is(err, topo.ErrStopping) {
				t.Errorf("%s: Ask returns %v", name, err)
			}
			if err := <-sent; !errors.Is(err, topo.ErrStopping) {
				t.Errorf("%s: a send returns %v", name, err)
			}
		})
	}
}

// TestManyClosesWithoutADrainTimeout has many calls of Close that take some time and do
// not hang. Run must return the error of the last one, which runs in parallel with
// others.
func TestManyClosesWithoutADrainTimeout(t *testing.T) {
	for _, drain := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var closed atomic.Int32
			top := build(t, []proc{{instances: 300, close: func(*cell) error {
				time.Sleep(7 * time.Millisecond)
				if closed.Add(1) == 300 {
					return errFailed
				}
				return nil
			}}}, nil, piper.DrainTimeout(drain))
			if err := top.pool.Run(t.Context()); !errors.Is(err, errFailed) || closed.Load() != 300 {
				t.Errorf("%d of 300 are closed, %v", closed.Load(), err)
			}
		})
	}
}

// TestInitsAfterTheDrainTimeout checks that no Init begins after the drain timeout, and
// that the missing calls do not count as hanging.
func TestInitsAfterTheDrainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		inits := 0
		procs := []proc{{instances: 100, watch: &piper.Watch{Attempts: 1}, init: func(*cell, context.Context) error {
			inits++
			time.Sleep(100 * time.Millisecond)
			return nil
		}}}
		top := supervised(t, onFailure(procs), procs, nil, piper.DrainTimeout(time.Second))
		err := top.run(t, ctx)
		if f := top.pool.Snapshot().Faults; !errors.Is(err, piper.ErrDrainTimeout) || f.Abandoned > 1 || f.Restarts > 0 || inits > 25 {
			t.Errorf("after %d Inits Run returns %v, %+v", inits, err, f)
		}
		time.Sleep(time.Second) // an abandoned Init returns
	})
}

// TestStartsLeaveNoContexts checks that the context of an instance's Init ends together
// with the instance.
func TestStartsLeaveNoContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		calls := 0
		procs := []proc{feed(0, 200, 1), {
			watch: &piper.Watch{Attempts: 1, Startup: time.Second},
			renew: func(ctx context.Context) error {
				open.Add(1)
				context.AfterFunc(ctx, func() { open.Add(-1) })
				return nil
			},
			receive: func(*cell, *message) error {
				if calls++; calls%100 == 0 {
					letContextsFinish()
					if n := open.Load(); n > 2 {
						t.Errorf("%d contexts have not ended after %d restarts", n, calls-1)
					}
				}
				return errFailed
			},
		}}
		top := supervised(t, onFailure(procs), procs, []edge{{from: 0, to: 1}}, piper.Workers(1))
		if err := top.run(t, t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// letContextsFinish waits, in virtual time, for the functions that run when contexts
// end.
func letContextsFinish() { time.Sleep(time.Millisecond) }
