package piper_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/faulty"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

var errFailed = errors.New("no ink")

// TestAnErrorNamesItsPlace makes each method of a processor fail: by an error, by a
// panic, and by ending its goroutine.
func TestAnErrorNamesItsPlace(t *testing.T) {
	ways := map[string]func() error{
		"error":   func() error { return errFailed },
		"panic":   func() error { panic(errFailed) },
		"value":   func() error { panic("no ink") },
		"goexit":  func() error { runtime.Goexit(); return nil },
		"runtime": func() error { var none []int; return fmt.Errorf("%d", none[len(none)]) },
	}
	for way, fails := range ways {
		for method, p := range map[string]proc{
			"Receive": {receive: func(*cell, *message) error { return fails() }},
			"Tick":    {tick: func(*cell, topo.Tick) error { return fails() }},
			"Ping":    {ping: func(*cell) error { return fails() }},
			"Finish":  {finish: func(*cell) error { return fails() }},
			"Serve":   {serve: func(*cell, context.Context) error { return fails() }},
			"Init":    {init: func(*cell, context.Context) error { return fails() }},
			"Close":   {close: func(*cell) error { return fails() }},
		} {
			for _, stepped := range []bool{false, true} {
				t.Run(fmt.Sprint(way, method, stepped), func(t *testing.T) {
					if way == "goexit" && stepped {
						t.Skip("it would end the test's own goroutine")
					}
					p.name, p.instances = "press", 2
					checkFailure(t, p, way, method, stepped)
				})
			}
		}
	}
}

// TestHostileErrors checks that errors whose methods panic or do not return end Run in
// time, as the failure of the method that returned them or panicked with them.
func TestHostileErrors(t *testing.T) {
	for _, failure := range []error{faulty.Error("Is"), faulty.Error("As"), faulty.Error("Unwrap"), faulty.Error("Error"), faulty.Error("itself"), (*piper.HandlerError)(nil)} {
		for way, fails := range map[string]func() error{
			"hostile error": func() error { return failure },
			"hostile panic": func() error { panic(failure) },
		} {
			for method, p := range map[string]proc{
				"Receive": {receive: func(*cell, *message) error { return fails() }},
				"Ping":    {ping: func(*cell) error { return fails() }},
				"Finish":  {finish: func(*cell) error { return fails() }},
				"Serve":   {serve: func(*cell, context.Context) error { return fails() }},
				"Init":    {init: func(*cell, context.Context) error { return fails() }},
				"Close":   {close: func(*cell) error { return fails() }},
			} {
				for _, stepped := range []bool{false, true} {
					t.Run(fmt.Sprintf("%#v %s %s %v", failure, way, method, stepped), func(t *testing.T) {
						p.name, p.instances = "press", 2
						checkFailure(t, p, way, method, stepped)
					})
				}
			}
		}
	}
}

// TestARecorderThatPanics checks that a panic of the recorder does not hide the error.
func TestARecorderThatPanics(t *testing.T) {
	var log journal
	top := build(t, []proc{feed(0, 1, 1), {receive: func(*cell, *message) error { panic(errFailed) }}}, []edge{{from: 0, to: 1}},
		log.option(), piper.Record(func() (piper.Recorder, error) { return panicking{}, nil }))
	if err := top.run(t, t.Context()); !errors.Is(err, errFailed) {
		t.Errorf("Run returns %v", err)
	}
	if log.count("the error recorder panicked") != 1 {
		t.Errorf("logged: %s", log.buf.String())
	}
}

type panicking struct{}

func (panicking) Record(int, string, int, error, []byte) { panic("full") }
func (panicking) Close() error                           { return nil }

// TestANilRecorder records nothing.
func TestANilRecorder(t *testing.T) {
	top := build(t, []proc{feed(0, 1, 1), {receive: func(*cell, *message) error { return errFailed }}}, []edge{{from: 0, to: 1}},
		piper.Record(func() (piper.Recorder, error) { return nil, nil }))
	if err := top.run(t, t.Context()); !errors.Is(err, errFailed) {
		t.Errorf("Run returns %v", err)
	}
}

// TestAnObserverThatPanics checks that an observer that panics or ends its goroutine
// ends Run. A worker, the monitor, or Run itself may have called it.
func TestAnObserverThatPanics(t *testing.T) {
	hang := func(c *cell, _ *message) error { <-c.Context().Done(); return nil }
	for what, make := range map[string]func() ([]proc, []edge){
		"Finished": func() ([]proc, []edge) { return []proc{feed(0, 1, 1), {}}, []edge{{from: 0, to: 1}} },
		"Moved":    func() ([]proc, []edge) { return []proc{feed(0, 1, 1), {receive: hang}}, []edge{{from: 0, to: 1}} },
		"Stop": func() ([]proc, []edge) {
			return []proc{{tick: func(*cell, topo.Tick) error { return nil }}}, []edge{{from: timer, to: 0, every: time.Hour}}
		},
	} {
		for way, end := range map[string]func(){
			"panic: seen enough": func() { panic("seen enough") },
			"the call ended":     runtime.Goexit,
		} {
			if what == "Stop" && way != "panic: seen enough" {
				continue // would end the goroutine of the test
			}
			o := observer{finished: end}
			if what == "Moved" {
				o = observer{moved: end}
			}
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				procs, edges := make()
				err := build(t, procs, edges, piper.Workers(1), piper.Observe(o)).run(t, ctx)
				if err == nil || !strings.HasPrefix(err.Error(), "pool: observer: "+way) {
					t.Errorf("%s: Run returns %v", what, err)
				}
			})
		}
	}
}

// observer is an Observer made of functions.
type observer struct{ moved, finished func() }

func (o observer) Moved(string, int, int, int) {
	if o.moved != nil {
		o.moved()
	}
}

func (o observer) Finished(string) {
	if o.finished != nil {
		o.finished()
	}
}

// TestAFailureBesideTheDrainTimeout checks that a failure of a handler that returns
// after the drain timeout is not lost. An error that only reports the end of the
// context is not a failure.
func TestAFailureBesideTheDrainTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		fails func(context.Context) error
		lost  bool
	}{
		"error":   {fails: func(context.Context) error { return errFailed }},
		"panic":   {fails: func(context.Context) error { panic(errFailed) }},
		"joined":  {fails: func(ctx context.Context) error { return errors.Join(errFailed, ctx.Err()) }},
		"context": {fails: func(ctx context.Context) error { return fmt.Errorf("%w: %w", errFailed, ctx.Err()) }, lost: true},
	} {
		for _, blocking := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				top := build(t, []proc{
					feed(0, 1, 1),
					{name: "press", blocking: blocking, receive: func(cell *cell, _ *message) error {
						cancel()
						<-cell.Context().Done()
						return c.fails(cell.Context())
					}},
				}, []edge{{from: 0, to: 1}}, piper.DrainTimeout(time.Second))
				err := top.run(t, ctx)
				if !errors.Is(err, piper.ErrDrainTimeout) || errors.Is(err, errFailed) == c.lost {
					t.Errorf("%s, blocking %v: Run returns %v", name, blocking, err)
				}
				if _, ok := errors.AsType[*piper.HandlerError](err); ok == c.lost {
					t.Errorf("%s, blocking %v: Run returns %v", name, blocking, err)
				}
			})
		}
	}
}

// TestFaultFiguresAreLoggedWhenTheyChange has two failures within a minute.
func TestFaultFiguresAreLoggedWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		calls := 0
		fails := proc{watch: &piper.Watch{Then: piper.ThenSkip, Attempts: 1}, tick: func(*cell, topo.Tick) error {
			if calls++; calls == 1 || calls == 30 {
				return errFailed
			}
			return nil
		}}
		top, err := constructSpec(func(s *piper.Spec) { s.FaultLog = 5 * time.Second }, []proc{fails}, []edge{{from: timer, to: 0, every: time.Second}}, log.option())
		if err != nil {
			t.Fatal(err)
		}
		if err := top.run(t, ctx); err != nil {
			t.Error(err)
		}
		if n := log.count("fault tolerance stats"); n != 2 {
			t.Errorf("the figures were logged %d times:\n%s", n, log.buf.String())
		}
	})
}

func checkFailure(t *testing.T, p proc, way, method string, stepped bool) {
	edges := []edge{{from: 0, to: 1}}
	procs := []proc{feed(0, 10, 1), p, {name: "other", finish: func(*cell) error { return nil }}}
	switch method {
	case "Serve":
		procs[0], edges = proc{name: "feed"}, nil
	case "Tick":
		procs[0], edges = proc{name: "feed"}, []edge{{from: timer, to: 1, every: 1}}
	}
	top := build(t, procs, append(edges, edge{from: 1, to: 2}), piper.Workers(2))
	var err error
	if stepped {
		s := top.pool.Stepper(1)
		for s.Step() {
		}
		err = s.Err()
	} else {
		err = top.run(t, t.Context())
	}
	var h *piper.HandlerError
	if !errors.As(err, &h) {
		t.Fatalf("Run returns %v", err)
	}
	if h.Processor != "press" || h.Instance < 0 || h.Instance > 1 {
		t.Errorf("the error names processor %q, instance %d", h.Processor, h.Instance)
	}
	switch {
	case method == "Receive" && (h.Edge != "feed -> press: M0" || h.Message != "M0" || h.Instance != 0):
		t.Errorf("the error names instance %d, edge %q, message %q", h.Instance, h.Edge, h.Message)
	case method == "Tick" && (h.Edge != "every 1ns -> press" || h.Message != "Tick"):
		t.Errorf("the error names edge %q, message %q", h.Edge, h.Message)
	case method != "Tick" && h.Method != method:
		t.Errorf("the error names the method %q", h.Method)
	}
	hostile := strings.HasPrefix(way, "hostile")
	if !hostile && (way == "error" || way == "panic") != errors.Is(err, errFailed) {
		t.Errorf("errors.Is(err, errFailed) is %v", errors.Is(err, errFailed))
	}
	if (way != "error" && way != "hostile error") != strings.Contains(string(h.Stack), "failure_test.go") {
		t.Errorf("its stack: %s", h.Stack)
	}
	if method != "Close" {
		top.check(t, false)
		if top.cells[2][0].finished {
			t.Error("Finish was called although nothing was drained")
		}
	}
}

// TestInitThatFailsClosesWhatWasInitialized checks that the initialized instances are
// closed in reverse order, and that no handler runs.
func TestInitThatFailsClosesWhatWasInitialized(t *testing.T) {
	top := build(t, []proc{
		{instances: 2, ping: func(c *cell) error { c.violated("Ping was called"); return topo.Done }},
		{instances: 3, init: func(c *cell, _ context.Context) error {
			if c.number == 1 {
				return errFailed
			}
			return nil
		}},
	}, []edge{{from: 0, to: 1}})
	if err := top.run(t, t.Context()); !errors.Is(err, errFailed) {
		t.Fatalf("Run returns %v", err)
	}
	top.check(t, false)
	if got := len(top.events); got != 2*3 {
		t.Errorf("%d calls, want 3 of Init and 3 of Close", got)
	}
}

// TestCloseErrorsAreAllReported checks that Run returns the errors of two calls of
// Close after a run without errors.
func TestCloseErrorsAreAllReported(t *testing.T) {
	top := build(t, []proc{
		feed(0, 3, 1),
		{instances: 2, close: func(c *cell) error { return fmt.Errorf("lid %d: %w", c.number, errFailed) }},
	}, []edge{{from: 0, to: 1}})
	err := top.run(t, t.Context())
	if !errors.Is(err, errFailed) || !strings.Contains(err.Error(), "lid 0") || !strings.Contains(err.Error(), "lid 1") {
		t.Errorf("Run returns %v", err)
	}
}

// TestTheFirstErrorEndsRun checks that an error ends Run at once: queued messages are
// not drained, and the contexts of other handlers end.
func TestTheFirstErrorEndsRun(t *testing.T) {
	began := make(chan struct{})
	top := build(t, []proc{
		{external: true},
		{blocking: true, receive: func(c *cell, _ *message) error {
			close(began)
			<-c.Context().Done()
			return errors.New("another, later")
		}},
		{receive: func(*cell, *message) error { <-began; return errFailed }},
	}, []edge{{from: 0, to: 1}, {from: 0, to: 2}})
	g := top.externals[0].caller()
	for range 100 {
		if err := g.sendAll(t.Context(), message{}, target{0, 0}, target{1, 0}); err != nil {
			t.Fatal(err)
		}
	}
	if err := top.run(t, t.Context()); !errors.Is(err, errFailed) {
		t.Fatalf("Run returns %v", err)
	}
	top.check(t, false)
	if err := g.send(t.Context(), 0, 0, message{}); !errors.Is(err, topo.ErrStopping) {
		t.Errorf("a send after the end returns %v", err)
	}
}
