package piper_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

// TestDeliverAndPingActUnderAStepperAlone checks that Deliver and Ping return
// ErrNoStepper without a Stepper.
func TestDeliverAndPingActUnderAStepperAlone(t *testing.T) {
	top := build(t, []proc{feed(0, 1, 1), {}}, []edge{{from: 0, to: 1}})
	if _, err := top.graph().Edge(0).Deliver(); !errors.Is(err, piper.ErrNoStepper) {
		t.Errorf("Deliver returns %v", err)
	}
	if err := top.graph().Processor(0).Ping(); !errors.Is(err, piper.ErrNoStepper) {
		t.Errorf("Ping returns %v", err)
	}
	top.runWhole(t)
}

// TestByHand runs a topology only with Ping and Deliver.
func TestByHand(t *testing.T) {
	var got []int
	top := build(t, []proc{
		{ping: func(c *cell) error {
			if c.calls == 2 {
				return topo.Done
			}
			return c.sendAll(message{}, target{0, 0}, target{1, 0}, target{2, 0})
		}},
		{receive: func(_ *cell, m *message) error { got = append(got, m.edge); return nil }},
		{},
	}, []edge{{from: 0, to: 1}, {from: 0, to: 1, capacity: 1, full: dropOldest}, {from: 0, to: 2}})
	top.pool.Stepper(1)
	feed, graph := top.graph().Processor(0), top.graph()
	deliver := func(edge int, want bool) {
		t.Helper()
		if ok, err := graph.Edge(edge).Deliver(); ok != want || err != nil {
			t.Errorf("edge %d: Deliver returns %v, %v", edge, ok, err)
		}
	}
	deliver(0, false)
	for range 2 {
		if err := feed.Ping(); err != nil {
			t.Fatal(err)
		}
	}
	deliver(1, false) // the first message of edge 0 comes before the second one of edge 1
	deliver(0, true)
	deliver(1, false)
	deliver(0, true)
	deliver(0, false)
	deliver(1, true)
	deliver(1, false)
	deliver(2, true)
	if e := graph.Edge(2); e.Len() != 1 || e.Received() != 1 {
		t.Errorf("edge 2: %d queued, %d received", e.Len(), e.Received())
	}
	deliver(2, true)
	if !slices.Equal(got, []int{0, 0, 1}) {
		t.Errorf("delivered along %v", got)
	}
	if err := feed.Ping(); err != nil { // done
		t.Error(err)
	}
	if !top.closed() {
		t.Error("the topology has not ended")
	}
	top.check(t, true)
}

// TestStepReportsWhenNothingIsLeft checks the result of Step before and after a message
// from outside.
func TestStepReportsWhenNothingIsLeft(t *testing.T) {
	top := build(t, []proc{{external: true}, {}}, []edge{{from: 0, to: 1}})
	s := top.pool.Stepper(1)
	if s.Step() {
		t.Error("Step returns true although there is nothing to do")
	}
	fill(t, top.externals[0].caller(), 2)
	steps := 0
	for s.Step() {
		steps++
	}
	if steps != 2 {
		t.Errorf("two messages took %d steps", steps)
	}
	top.externals[0].Close()
	if err := s.Run(); err != nil || !top.closed() || s.Step() {
		t.Errorf("Run returns %v; closed %v", err, top.closed())
	}
	top.check(t, true)
}

// TestASendUnderTheStepperStepsWhileFull also checks the error if steps do not make
// room.
func TestASendUnderTheStepperStepsWhileFull(t *testing.T) {
	top := build(t, []proc{{external: true}, {}}, []edge{{from: 0, to: 1, capacity: 3}})
	s := top.pool.Stepper(1)
	fill(t, top.externals[0].caller(), 1000)
	top.externals[0].Close()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
}

// TestTheStepperWaitsForIdleSources checks that the Stepper advances its clock for an
// idle Ping.
func TestTheStepperWaitsForIdleSources(t *testing.T) {
	top := build(t, []proc{{ping: func(c *cell) error {
		if c.calls == 8 {
			return topo.Done
		}
		return topo.Idle
	}}}, nil)
	s := top.pool.Stepper(1)
	began := s.Now()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	if d := s.Now().Sub(began); d != (1+2+4+8+16+32+64+100)*time.Millisecond {
		t.Errorf("it took %v", d)
	}
	top.check(t, true)
}

// TestSeedsDiffer checks that different seeds give different traces, and the same seed
// the same trace.
func TestSeedsDiffer(t *testing.T) {
	traceOf := func(seed uint64) (trace []string) {
		top := build(t, []proc{feed(0, 20, 1), feed(1, 20, 1), {}}, []edge{{from: 0, to: 2}, {from: 1, to: 2}})
		s := top.pool.Stepper(seed)
		s.Trace(func(step uint64, processor string, instance int) {
			trace = append(trace, fmt.Sprint(step, processor, instance))
		})
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		top.check(t, true)
		return trace
	}
	if !slices.Equal(traceOf(1), traceOf(1)) {
		t.Error("the same seed gave two different traces")
	}
	if slices.Equal(traceOf(1), traceOf(2)) {
		t.Error("two seeds gave the same trace")
	}
}

// TestSeedsDifferInRestarts compares the traces of topologies in which only the delays of
// restarts are random.
func TestSeedsDifferInRestarts(t *testing.T) {
	traceOf := func(seed uint64) (trace []string) {
		v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{
			Name: "p0", Instances: 3, Supervised: true, Policy: supervise.OnFailure, MaxRestarts: 9, Delay: time.Second, Jitter: 1,
		}}})
		top := supervised(t, v, []proc{{instances: 3, watch: &piper.Watch{}, ping: func(*cell) error { return errFailed }}}, nil)
		s := top.pool.Stepper(seed)
		s.Trace(func(step uint64, processor string, instance int) {
			trace = append(trace, fmt.Sprint(step, processor, instance))
		})
		if err := s.Run(); !errors.Is(err, piper.ErrGaveUp) {
			t.Fatal(err)
		}
		return append(trace, s.Now().String())
	}
	if a, b := traceOf(1), traceOf(1); !slices.Equal(a, b) {
		t.Errorf("the same seed gave two different traces:\n%s\n%s", a, b)
	}
	if slices.Equal(traceOf(1), traceOf(2)) {
		t.Error("two seeds gave the same trace")
	}
}

// TestServesEndInOrder checks the order in which calls of Serve return when the topology ends
// with an error. It must be the order of the processors.
func TestServesEndInOrder(t *testing.T) {
	var ended []int
	procs := []proc{{ping: func(c *cell) error {
		if c.calls == 100 {
			return errFailed
		}
		return nil
	}}}
	for i := range 5 {
		procs = append(procs, proc{serve: func(c *cell, _ context.Context) error {
			defer func() { ended = append(ended, i) }()
			for {
				if err := c.send(i, 0, message{}); err != nil {
					return err
				}
			}
		}})
	}
	procs = append(procs, proc{})
	edges := make([]edge, 5)
	for i := range edges {
		edges[i] = edge{from: 1 + i, to: 6}
	}
	if err := build(t, procs, edges).pool.Stepper(1).Run(); !errors.Is(err, errFailed) {
		t.Fatal(err)
	}
	if !slices.Equal(ended, []int{0, 1, 2, 3, 4}) {
		t.Errorf("the calls returned in the order %v", ended)
	}
}

// TestCloseEndsTheTopology calls Close after each number of steps. All instances that were
// initialized must be closed, calls of Serve must return, and later calls must do nothing.
func TestCloseEndsTheTopology(t *testing.T) {
	for steps := range 40 {
		serving := 0
		top := build(t, []proc{
			{external: true},
			feed(1, 100, 1),
			{serve: func(c *cell, ctx context.Context) error {
				serving++
				defer func() { serving-- }()
				for ctx.Err() == nil {
					_ = c.send(2, 0, message{})
				}
				return nil
			}},
			{instances: 2, finish: func(*cell) error { t.Error("Finish was called"); return nil }},
		}, []edge{{from: 0, to: 3, capacity: 1}, {from: 1, to: 3}, {from: 2, to: 3}, {from: timer, to: 3, every: time.Second}})
		s := top.pool.Stepper(uint64(steps))
		for range steps {
			s.Step()
		}
		s.Close()
		for _, c := range top.all {
			for _, b := range c.past.bodies {
				if b.closed != b.inited || b.inited != (steps > 0) {
					t.Errorf("after %d steps: Init was called %v, Close %v", steps, b.inited, b.closed)
				}
			}
		}
		if serving != 0 {
			t.Errorf("after %d steps: Serve runs", steps)
		}
		s.Close()
		s.Stop()
		if s.Step() || s.Err() != nil || s.Run() != nil || s.Advance(time.Hour) != nil {
			t.Errorf("after %d steps and Close: %v", steps, s.Err())
		}
		if err := top.externals[0].caller().send(t.Context(), 0, 0, message{}); !errors.Is(err, topo.ErrStopping) {
			t.Errorf("a send after Close returns %v", err)
		}
	}
}

// TestCloseAfterAFailedTest calls Close after a handler has ended the goroutine of the
// test, and after a handler hangs.
func TestCloseAfterAFailedTest(t *testing.T) {
	for name, fails := range map[string]func(*piper.Stepper){"FailNow": func(*piper.Stepper) { runtime.Goexit() }, "hang": (*piper.Stepper).Hang} {
		var s *piper.Stepper
		closed := 0
		top := build(t, []proc{
			feed(0, 3, 1),
			{watch: &piper.Watch{Timeout: time.Second}, receive: func(*cell, *message) error { fails(s); return nil }},
			{close: func(*cell) error { closed++; return errFailed }},
		}, []edge{{from: 0, to: 1}, {from: timer, to: 2, every: time.Hour}})
		s = top.pool.Stepper(1)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer s.Close()
			for s.Turn() {
			}
		}()
		<-ended
		if closed != 1 || !errors.Is(s.Err(), errFailed) {
			t.Errorf("%s: Close of another instance was called %d times, and Err is %v", name, closed, s.Err())
		}
	}
}

// TestCloseGoesOnAfterAGoexit calls Close while Serve, or Close of an instance, ends its
// goroutine, as t.FailNow does. The other instances end and are closed.
func TestCloseGoesOnAfterAGoexit(t *testing.T) {
	closed, returned := 0, false
	count := func(*cell) error { closed++; return nil }
	serve := func(edge int, end func()) proc {
		return proc{close: count, serve: func(c *cell, _ context.Context) error {
			for c.send(edge, 0, message{}) == nil {
			}
			end()
			return nil
		}}
	}
	top := build(t, []proc{
		serve(0, runtime.Goexit),
		serve(1, func() { returned = true }),
		{close: func(*cell) error { closed++; runtime.Goexit(); return nil }},
	}, []edge{{from: 0, to: 2}, {from: 1, to: 2}})
	s := top.pool.Stepper(1)
	for range 9 {
		s.Step()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Close()
	}()
	<-ended
	if closed != 3 || !returned || s.Err() == nil || !strings.Contains(s.Err().Error(), "runtime.Goexit") {
		t.Errorf("%d of 3 instances were closed, another Serve returned %v, and Err is %v", closed, returned, s.Err())
	}
}

// TestServeUnderTheStepper checks that Serve continues one send at a time, between the
// steps of other instances.
func TestServeUnderTheStepper(t *testing.T) {
	var d diary
	serve := func(edge int) proc {
		return proc{serve: func(c *cell, _ context.Context) error {
			for range 10 {
				d.note("%d", edge)
				if err := c.send(edge, 0, message{}); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	top := build(t, []proc{serve(0), serve(1), {}}, []edge{{from: 0, to: 2}, {from: 1, to: 2}})
	if err := top.pool.Stepper(3).Run(); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
	changes := 0
	for i := range d.lines[1:] {
		if d.lines[i] != d.lines[i+1] {
			changes++
		}
	}
	if changes < 4 {
		t.Errorf("the order is %v", d.lines)
	}
}
