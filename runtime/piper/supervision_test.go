package piper_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

// decisions is a Supervisor made of a function.
type decisions func(e piper.ChildEvent) []piper.ChildEffect

func (decisions) Seed(uint64) {}

func (d decisions) Step(_ time.Duration, e piper.ChildEvent) []piper.ChildEffect { return d(e) }

// hearsFaults is an observer that calls gaveUp when an instance is given up.
type hearsFaults struct{ gaveUp func() }

func (hearsFaults) Moved(string, int, int, int)        {}
func (hearsFaults) Finished(string)                    {}
func (hearsFaults) Restarted(string, int)              {}
func (hearsFaults) InputBroken(string, int, string)    {}
func (hearsFaults) InputRecovered(string, int, string) {}
func (hearsFaults) Failed(string, int, error)          {}
func (h hearsFaults) GaveUp(string, int, error)        { h.gaveUp() }

func supervised(t testing.TB, v piper.Supervisor, procs []proc, edges []edge, opts ...piper.Option) *topology {
	t.Helper()
	opts = append(opts, piper.Logger(slog.New(slog.DiscardHandler)))
	top, err := constructWith(v, procs, edges, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// TestACommandToStartIsNotObeyedWhenTheInputsAreDone has a command to start that was
// given before the topology stopped and that the worker reads after it.
func TestACommandToStartIsNotObeyedWhenTheInputsAreDone(t *testing.T) {
	a, b := piper.Child{Processor: 0}, piper.Child{Processor: 1}
	ctx, cancel := context.WithCancel(t.Context())
	stopping := make(chan struct{})
	v := decisions(func(e piper.ChildEvent) []piper.ChildEffect {
		switch e.Kind {
		case piper.ChildFailed:
			return []piper.ChildEffect{{Kind: piper.EffectGiveUp, Child: b, Err: errRandom}, {Kind: piper.EffectStart, Child: a}}
		case piper.ChildInputsDone:
			if e.Child == a {
				close(stopping)
			}
		case piper.ChildNotStarted:
			return []piper.ChildEffect{{Kind: piper.EffectDone, Child: e.Child}}
		}
		return nil
	})
	made := false
	procs := []proc{
		{watch: &piper.Watch{}, ping: func(*cell) error { return errRandom }, make: func(*cell, int) error { made = true; return nil }},
		{watch: &piper.Watch{}, ping: func(*cell) error { return topo.Idle }},
	}
	top := supervised(t, v, procs, nil, piper.Workers(1), piper.Observe(hearsFaults{gaveUp: func() { cancel(); <-stopping }}))
	if err := top.run(t, ctx); !errors.Is(err, piper.ErrGaveUp) || made {
		t.Errorf("Run returns %v; made %v", err, made)
	}
}

// TestACommandToWaitReplacesACommandToStart has an instance that fails before it has read a command
// to start. The instance must be started once, after the delay.
func TestACommandToWaitReplacesACommandToStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := piper.Child{Processor: 0}, piper.Child{Processor: 1}
		v := decisions(func(e piper.ChildEvent) []piper.ChildEffect {
			switch {
			case e.Kind == piper.ChildFailed && e.Child == b:
				return []piper.ChildEffect{{Kind: piper.EffectGiveUp, Child: b, Err: e.Err}, {Kind: piper.EffectStart, Child: a}}
			case e.Kind == piper.ChildFailed:
				return []piper.ChildEffect{{Kind: piper.EffectWait, Child: a, Delay: time.Second}}
			case e.Kind == piper.ChildDue:
				return []piper.ChildEffect{{Kind: piper.EffectStart, Child: a}}
			case e.Kind == piper.ChildEnded:
				return []piper.ChildEffect{{Kind: piper.EffectDone, Child: a}}
			}
			return nil
		})
		began, started := time.Now(), []time.Duration(nil)
		procs := []proc{
			{watch: &piper.Watch{}, ping: func(*cell) error {
				if started != nil {
					return topo.Done
				}
				time.Sleep(2 * time.Millisecond)
				return errRandom
			}, make: func(*cell, int) error { started = append(started, time.Since(began)); return nil }},
			{watch: &piper.Watch{}, ping: func(*cell) error { time.Sleep(time.Millisecond); return errRandom }},
		}
		top := supervised(t, v, procs, nil, piper.Workers(2))
		if err := top.run(t, t.Context()); !errors.Is(err, piper.ErrGaveUp) {
			t.Errorf("Run returns %v", err)
		}
		if want := []time.Duration{time.Second + 2*time.Millisecond}; !slices.Equal(started, want) {
			t.Errorf("started after %v, want %v", started, want)
		}
	})
}

// TestAHangInFinishEndsRun checks that Run ends, because the group could not finish
// otherwise.
func TestAHangInFinishEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		defer close(forever)
		procs := []proc{{watch: &piper.Watch{Timeout: time.Second}, finish: func(*cell) error { <-forever; return nil }}}
		v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{Name: "p0", Instances: 1, Supervised: true, Policy: supervise.OnFailure}}})
		top := supervised(t, v, procs, nil)
		var e *piper.HandlerError
		if err := top.run(t, t.Context()); !errors.As(err, &e) || e.Method != "Finish" {
			t.Errorf("Run returns %v", err)
		}
	})
}

// TestWatchedWithoutASupervisor checks that only failures end the topology.
func TestWatchedWithoutASupervisor(t *testing.T) {
	n := 0
	procs := []proc{
		{watch: &piper.Watch{Then: piper.ThenSkip}, ping: func(c *cell) error {
			if n++; n > 100 {
				return topo.Done
			}
			return c.send(0, 0, message{})
		}},
		{watch: &piper.Watch{Then: piper.ThenSkip, Attempts: 1}, receive: func(*cell, *message) error { return errRandom }},
	}
	top := supervised(t, nil, procs, []edge{{from: 0, to: 1}})
	if err := top.run(t, t.Context()); err != nil {
		t.Error(err)
	}
	if f := top.pool.Snapshot().Faults; f.Dropped != 100 {
		t.Errorf("%+v", f)
	}
}

// TestALoggerThatPanics checks that a panic of the logger, wherever it is called, ends
// Run and not the process.
func TestALoggerThatPanics(t *testing.T) {
	procs := []proc{{watch: &piper.Watch{}, ping: func(*cell) error { panic("ping") }}}
	top, err := constructWith(supervise.New(supervise.Spec{}), procs, nil, piper.Logger(slog.New(panics{slog.DiscardHandler})))
	if err != nil {
		t.Fatal(err)
	}
	if err := top.run(t, t.Context()); err == nil {
		t.Error("Run returns nil")
	}
}

type panics struct{ slog.Handler }

func (panics) Enabled(context.Context, slog.Level) bool { panic("logger") }

// TestTicksGoOnAfterAHang checks that the timers of an abandoned worker continue on its
// successor.
func TestTicksGoOnAfterAHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		defer close(forever)
		var ticks atomic.Int64
		procs := []proc{{blocking: true, watch: &piper.Watch{Timeout: time.Second}, tick: func(*cell, topo.Tick) error {
			if ticks.Add(1) == 2 {
				<-forever
			}
			return nil
		}}}
		v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{Name: "p0", Instances: 1, Supervised: true, Policy: supervise.OnFailure}}})
		top := supervised(t, v, procs, []edge{{from: timer, to: 0, every: 100 * time.Millisecond}})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := top.run(t, ctx); err != nil || ticks.Load() < 30 {
			t.Errorf("%d ticks, %v", ticks.Load(), err)
		}
	})
}

// TestServeEndsWhenItIsToStop checks that a command to stop ends Serve, also if Serve
// only checks the results of its sends.
func TestServeEndsWhenItIsToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var serves atomic.Int64
		fails := make(chan struct{})
		procs := []proc{
			{watch: &piper.Watch{Attempts: 1}, serve: func(c *cell, _ context.Context) error {
				if serves.Add(1) == 2 {
					return nil
				}
				for n := 0; ; n++ {
					if n == 10 {
						close(fails)
					}
					time.Sleep(time.Millisecond)
					if err := c.send(0, 0, message{}); err != nil {
						return err
					}
				}
			}},
			{},
			{watch: &piper.Watch{Attempts: 1}, ping: func(*cell) error {
				select {
				case <-fails:
					if serves.Load() < 2 {
						return errRandom
					}
					return topo.Done
				default:
					return topo.Idle
				}
			}},
		}
		p := func(name string) supervise.Processor {
			return supervise.Processor{Name: name, Instances: 1, Supervised: true, Policy: supervise.OnFailure, Delay: time.Second}
		}
		v := supervise.New(supervise.Spec{
			Processors: []supervise.Processor{p("p0"), {}, p("p2")},
			Groups:     []supervise.Group{{Name: "g", Processors: []int{0, 2}, Strategy: supervise.OneForAll}},
		})
		top := supervised(t, v, procs, []edge{{from: 0, to: 1}})
		if err := top.run(t, t.Context()); err != nil || serves.Load() != 2 {
			t.Errorf("Serve was called %d times, %v", serves.Load(), err)
		}
	})
}

// TestConstructorsThatDoNotReturn has a constructor that ends its goroutine, and one
// that never returns and must delay neither other instances nor the end.
func TestConstructorsThatDoNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		defer close(forever)
		var once sync.Once
		procs := []proc{{
			watch: &piper.Watch{Attempts: 1},
			ping: func(c *cell) (err error) {
				once.Do(func() { err = errRandom })
				if err == nil {
					err = topo.Done
				}
				return err
			},
			make: func(_ *cell, n int) error {
				if n == 1 {
					runtime.Goexit()
				}
				<-forever
				return nil
			},
		}}
		v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{Name: "p0", Instances: 1, Supervised: true, Policy: supervise.OnFailure}}})
		top := supervised(t, v, procs, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := top.run(t, ctx); err != nil {
			t.Errorf("Run returns %v", err)
		}
		if f := top.pool.Snapshot().Faults; f.Restarts != 0 {
			t.Errorf("%+v", f)
		}
	})
}

// BenchmarkRestart measures the time from a handler that fails to the next message that
// the new instance handles.
func BenchmarkRestart(b *testing.B) {
	left, handled := b.N+1, 0
	procs := []proc{
		{ping: func(c *cell) error {
			if left == 0 {
				return topo.Done
			}
			left--
			return c.send(0, 0, message{})
		}},
		{watch: &piper.Watch{Attempts: 1}, receive: func(*cell, *message) error {
			if handled++; handled > b.N {
				return nil
			}
			return errRandom
		}},
	}
	v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{}, {Name: "p1", Instances: 1, Supervised: true, Policy: supervise.OnFailure}}})
	top := supervised(b, v, procs, []edge{{from: 0, to: 1}})
	b.ReportAllocs()
	b.ResetTimer()
	if err := top.pool.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	if f := top.pool.Snapshot().Faults; f.Restarts != uint64(b.N) {
		b.Fatalf("%+v", f)
	}
}

// TestTicksForAnInstanceThatWasGivenUpAreDropped checks the figures of a timer whose
// receiver is given up at the third tick.
func TestTicksForAnInstanceThatWasGivenUpAreDropped(t *testing.T) {
	procs := []proc{
		{watch: &piper.Watch{Attempts: 1}, tick: func(_ *cell, tick topo.Tick) error {
			if tick.N >= 2 {
				return errFailed
			}
			return nil
		}},
		{tick: func(*cell, topo.Tick) error { return nil }},
	}
	v := supervise.New(supervise.Spec{Processors: []supervise.Processor{
		{Name: "p0", Instances: 1, Supervised: true, Policy: supervise.OnFailure, MaxRestarts: 1}, {},
	}})
	top := supervised(t, v, procs, []edge{{from: timer, to: 0, every: time.Second}, {from: timer, to: 1, every: time.Second}})
	s := top.pool.Stepper(1)
	if err := s.Advance(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if f := top.pool.Snapshot().Edges[0]; f.Sent != 10 || f.Received != 3 || f.Dropped != 7 {
		t.Errorf("10 ticks, of which 3 were handled: %+v", f)
	}
	s.Stop()
	if err := s.Run(); !errors.Is(err, piper.ErrGaveUp) {
		t.Error(err)
	}
	top.check(t, true)
}
