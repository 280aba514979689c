package pool_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

var errFailed = errors.New("no ink")

// TestAnErrorNamesItsPlace lets each method of a processor fail, by an error, a
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
					if way == "goexit" && (stepped || method == "Init" || method == "Close") {
						t.Skip("it would end the test's own goroutine")
					}
					p.name, p.instances = "press", 2
					checkFailure(t, p, way, method, stepped)
				})
			}
		}
	}
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
	top := build(t, procs, append(edges, edge{from: 1, to: 2}), pool.Workers(2))
	var err error
	if stepped {
		s := top.pool.Stepper(1)
		for s.Step() {
		}
		err = s.Err()
	} else {
		err = top.run(t, t.Context())
	}
	var h *pool.HandlerError
	if !errors.As(err, &h) {
		t.Fatalf("Run returns %v", err)
	}
	if h.Processor != "press" || h.Instance < 0 || h.Instance > 1 {
		t.Errorf("it names processor %q, instance %d", h.Processor, h.Instance)
	}
	switch {
	case method == "Receive" && (h.Edge != "feed -> press: M0" || h.Message != "M0" || h.Instance != 0):
		t.Errorf("it names instance %d, edge %q, message %q", h.Instance, h.Edge, h.Message)
	case method == "Tick" && (h.Edge != "every 1ns -> press" || h.Message != "Tick"):
		t.Errorf("it names edge %q, message %q", h.Edge, h.Message)
	case method != "Tick" && !strings.Contains(h.Method, method):
		t.Errorf("it names the method %q", h.Method)
	}
	if (way == "error" || way == "panic") != errors.Is(err, errFailed) {
		t.Errorf("it unwraps to the cause: %v", errors.Is(err, errFailed))
	}
	if (way != "error") != strings.Contains(string(h.Stack), "failure_test.go") {
		t.Errorf("its stack: %s", h.Stack)
	}
	if method != "Close" {
		top.check(t, false)
		if top.cells[2][0].finished {
			t.Error("Finish was called though nothing is drained")
		}
	}
}

// TestInitThatFailsClosesWhatWasInitialized: in reverse order, and nothing runs.
func TestInitThatFailsClosesWhatWasInitialized(t *testing.T) {
	top := build(t, []proc{
		{instances: 2, ping: func(c *cell) error { c.violated("Ping runs"); return topo.Done }},
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
		t.Errorf("%d calls, not 3 Init and 3 Close", got)
	}
}

// TestCloseErrorsAreAllReported: Run ended well, and two instances cannot close.
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

// TestTheFirstErrorEndsRun at once: nothing is drained, and handlers of others
// see the end of their context.
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
	g := top.doors[0].guest()
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
