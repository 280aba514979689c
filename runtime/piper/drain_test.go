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

// TestRestartsGoOnWhileDraining has queued messages when the context ends, and a
// handler that sometimes fails: by an error, a panic or a hang. Restarted instances
// must handle the queued messages, whether a restart was pending at the end of the
// context or not, and with and without a delay before restarts.
func TestRestartsGoOnWhileDraining(t *testing.T) {
	const messages = 100
	for name, pending := range map[string]bool{"the first failure comes later": false, "a restart is pending": true} {
		for _, delay := range []time.Duration{0, time.Second} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				forever := make(chan struct{})
				defer close(forever)
				handled, calls := 0, 0
				procs := []proc{{external: true}, {
					watch: &piper.Watch{Attempts: 3, Timeout: time.Second},
					receive: func(c *cell, _ *message) error {
						calls++
						if calls == 1 && pending || calls == 2 && !pending {
							cancel()
						}
						switch {
						case calls == 1 && pending, calls%30 == 10:
							return errFailed
						case calls%30 == 20:
							panic(errFailed)
						case calls%30 == 0:
							c.body.left = true
							c.past.hung.Add(1) // must be the last access to c
							<-forever
							return nil
						}
						handled++
						return nil
					},
				}}
				v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{}, {
					Name: "p1", Instances: 1, Supervised: true, Policy: supervise.OnFailure, MaxRestarts: 20, Delay: delay, MaxDelay: delay,
				}}})
				top := supervised(t, v, procs, []edge{{from: 0, to: 1}}, piper.Workers(1))
				for range messages {
					if err := top.externals[0].caller().send(ctx, 0, 0, message{}); err != nil {
						t.Fatal(err)
					}
				}
				if err := top.run(t, ctx); err != nil || handled != messages {
					t.Errorf("%s, delay %v: %d of %d messages were handled, %v", name, delay, handled, messages, err)
				}
				if f := top.pool.Snapshot(); f.Edges[0].Received != messages || f.Faults.Restarts < 9 {
					t.Errorf("%s, delay %v: %+v, %+v", name, delay, f.Edges[0], f.Faults)
				}
				top.report(t)
			})
		}
	}
}

// TestWhatADrainCannotHandleIsReported has an instance whose restarts are used up, or
// whose next restart would come too late. Run must count the remaining messages and
// report them.
func TestWhatADrainCannotHandleIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		limit int
		delay time.Duration
		want  error
		text  string
	}{
		"restarts are used up": {limit: 2, want: piper.ErrGaveUp},
		"a restart is too late": {delay: time.Hour, want: piper.ErrDrainTimeout, text: "p0 -> p1: M0: 9 messages left\n\t" +
			`processor "p1", instance 0: a message waits for its next attempt`},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			procs := []proc{{external: true}, {
				watch:   &piper.Watch{Attempts: 100},
				receive: func(*cell, *message) error { cancel(); return errFailed },
			}}
			v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{}, {
				Name: "p1", Instances: 1, Supervised: true, Policy: supervise.OnFailure, MaxRestarts: c.limit, Delay: c.delay,
			}}})
			top := supervised(t, v, procs, []edge{{from: 0, to: 1}}, piper.Workers(1), piper.DrainTimeout(3*time.Second))
			for range 10 {
				if err := top.externals[0].caller().send(ctx, 0, 0, message{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := top.run(t, ctx); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: Run returns %v", name, err)
			}
			if f := top.pool.Snapshot().Edges[0]; f.Sent != 10 || f.Sent != f.Received+f.Dropped+uint64(f.Len) {
				t.Errorf("%s: %+v", name, f)
			}
		})
	}
}

// TestMessagesOfAHangingCallAreReported has an instance with a goroutine of its own. Its call sends
// messages and hangs. The error of the drain timeout must count these messages.
func TestMessagesOfAHangingCallAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		top := build(t, []proc{feed(0, 5, 1), {blocking: true, receive: func(c *cell, _ *message) error {
			for range 100 {
				if err := c.send(1, 0, message{}); err != nil {
					return err
				}
			}
			if c.calls == 1 {
				time.Sleep(time.Hour)
			}
			return nil
		}}, {}}, []edge{{from: 0, to: 1}, {from: 1, to: 2}}, piper.DrainTimeout(time.Second))
		err := top.pool.Run(ctx)
		want := "feed -> p1: M0: 4 messages left\n\tp1 -> p2: M1: 100 messages left\n\t" + `processor "p1", instance 0: a call has not returned`
		if !errors.Is(err, piper.ErrDrainTimeout) || !strings.Contains(err.Error(), want) {
			t.Errorf("Run returns %v, want %s", err, want)
		}
		if f := top.pool.Snapshot().Edges[1]; f.Len != 100 {
			t.Errorf("%+v", f)
		}
		time.Sleep(time.Hour)
	})
}

// TestSourcesAreNotRestartedWhileDraining checks that sources are not restarted after
// the context has ended, because they would have nothing to do. A failure of Serve must
// still be reported.
func TestSourcesAreNotRestartedWhileDraining(t *testing.T) {
	for name, c := range map[string]struct {
		policy supervise.Policy
		proc   proc
		want   error
	}{
		"Serve ends":        {policy: supervise.Always, proc: proc{serve: func(_ *cell, ctx context.Context) error { <-ctx.Done(); return nil }}},
		"Serve fails":       {policy: supervise.OnFailure, proc: proc{serve: func(_ *cell, ctx context.Context) error { <-ctx.Done(); return errFailed }}, want: piper.ErrGaveUp},
		"Serve waits":       {policy: supervise.OnFailure, proc: proc{serve: func(*cell, context.Context) error { return errFailed }}},
		"Ping idles":        {policy: supervise.Always, proc: proc{ping: func(*cell) error { return topo.Idle }}},
		"Ping waits":        {policy: supervise.OnFailure, proc: proc{ping: func(*cell) error { return errFailed }}},
		"Ping waits, ended": {policy: supervise.Always, proc: proc{ping: func(*cell) error { return topo.Done }}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			c.proc.watch = &piper.Watch{Attempts: 1}
			c.proc.make = func(*cell, int) error {
				if ctx.Err() != nil {
					t.Errorf("%s: an instance was restarted", name)
				}
				return nil
			}
			v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{
				Name: "p0", Instances: 1, Supervised: true, Policy: c.policy, Delay: time.Hour,
			}, {}}})
			top := supervised(t, v, []proc{c.proc, {}}, []edge{{from: 0, to: 1}}, piper.Workers(1))
			began := time.Now()
			if err := top.run(t, ctx); !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%s: Run returns %v", name, err)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%s: Run takes %v", name, took)
			}
		})
	}
}

// TestATickIsNotWorthARestart stops the topology while a tick is queued for an instance
// that is down, or that fails at the next tick. Run must return without delay and count
// the tick.
func TestATickIsNotWorthARestart(t *testing.T) {
	for _, fails := range []uint64{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			procs := []proc{{watch: &piper.Watch{Attempts: 1}, tick: func(_ *cell, tick topo.Tick) error {
				if tick.N == fails {
					<-ctx.Done()
					return errFailed
				}
				return nil
			}}}
			if fails == 1 {
				procs[0].tick = func(*cell, topo.Tick) error { return errFailed }
			}
			v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{
				Name: "p0", Instances: 1, Supervised: true, Policy: supervise.OnFailure, Delay: time.Hour,
			}}})
			top := supervised(t, v, procs, []edge{{from: timer, to: 0, every: time.Second}}, piper.Workers(1))
			began := time.Now()
			err := top.run(t, ctx)
			if took := time.Since(began); err != nil && !errors.Is(err, piper.ErrGaveUp) || took > 3*time.Second {
				t.Errorf("after %v Run returns %v", took, err)
			}
			if f := top.pool.Snapshot().Edges[0]; f.Sent != f.Received+f.Dropped || f.Len != 0 {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestATickAfterTheStopIsNotWorthARestart has another sender that is still drained
// after the stop, so the timer ticks for an instance that is down. The ticks must not
// cause a restart.
func TestATickAfterTheStopIsNotWorthARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		procs := []proc{
			feed(0, 1, 1),
			{name: "up", blocking: true, receive: func(*cell, *message) error { time.Sleep(4 * time.Second); return nil }},
			{name: "down", watch: &piper.Watch{Attempts: 1}, tick: func(*cell, topo.Tick) error { return errFailed }},
		}
		v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{}, {}, {
			Name: "down", Instances: 1, Supervised: true, Policy: supervise.OnFailure, Delay: time.Hour,
		}}})
		top := supervised(t, v, procs, []edge{{from: 0, to: 1}, {from: 1, to: 2}, {from: timer, to: 2, every: time.Second}}, piper.Workers(1))
		began := time.Now()
		err := top.run(t, ctx)
		if took := time.Since(began); err != nil && !errors.Is(err, piper.ErrGaveUp) || took > 5*time.Second {
			t.Errorf("after %v Run returns %v", took, err)
		}
	})
}
