package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// TestTheWhole runs the topology step by step in virtual time, including the process of
// gps: for the Stepper a call in it is a step like any other. Twelve seconds take some
// milliseconds. Each seed gives a different order of simultaneous events.
func TestTheWhole(t *testing.T) {
	for seed := range uint64(3) {
		var out bytes.Buffer
		var stepper *pool.Stepper
		topology, err := New(Processors{
			Lidar: func(topo.Instance) (*Lidar, error) {
				l := NewLidar(SensorConfig{Seed: 2, Noise: 0.1, FailsAfter: 75})
				l.hang = func() { stepper.Hang() } // for the topology the call never returns
				return l, nil
			},
			Status: func(topo.Instance) (*Status, error) { return &Status{screen: &Screen{out: &out}}, nil },
		}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		stepper = topology.Stepper(seed)
		if err := stepper.Advance(12 * time.Second); err != nil {
			t.Fatal(err)
		}
		stepper.Stop()
		if err := stepper.Run(); err != nil {
			t.Fatal(err)
		}
		lines := out.String()
		for _, want := range []string{
			`degraded +camera is silent`, `camera was restarted`, `camera is back after 1\.[23] s`,
			`camera is back after 2\.[45] s`, // the second delay is twice the first
			`lidar is silent`, `lidar was restarted`, `lidar is back after 1\.[23] s`,
			`emergency +imu is silent`, `imu is back after 0\.6 s`,
			`gps is silent`, `gps was restarted`, `gps is back after 2\.[67] s`,
		} {
			if !regexp.MustCompile(`(?m)^ +[0-9.]+ s  .*` + want + "$").MatchString(lines) {
				t.Errorf("seed %d: no line %q in\n%s", seed, want, lines)
			}
		}
		faults := *topology.Snapshot().Faults
		faults.Dropped = 0 // messages that the camera and the lidar were handling
		if want := (pool.FaultFigures{Restarts: 5, HealthCheckKills: 1, Abandoned: 1, InputTimeouts: 6, CircuitBreakerRecoveries: 6}); faults != want {
			t.Errorf("seed %d: %+v", seed, faults)
		}
		for mode, most := range [modeCount]float64{Healthy: 0.3, Degraded: 0.5, Emergency: 0.3} {
			if m := topology.Status(0).errors[mode]; m.count == 0 || m.sum/float64(m.count) > most {
				t.Errorf("seed %d: the mean error while %v is %v of %d", seed, Mode(mode), m, m.count)
			}
		}
	}
}

// TestTheSameSeed checks that the instances run in the same order each time, although the
// processes of gps take a different time to end.
func TestTheSameSeed(t *testing.T) {
	run := func() (trace []string) {
		topology, err := New(Processors{
			Status: func(topo.Instance) (*Status, error) { return &Status{screen: &Screen{out: io.Discard}}, nil },
		}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		stepper := topology.Stepper(1)
		stepper.Trace(func(step uint64, processor string, _ int) { trace = append(trace, processor) })
		if err := stepper.Advance(7 * time.Second); err != nil {
			t.Fatal(err)
		}
		stepper.Stop()
		if err := stepper.Run(); err != nil {
			t.Fatal(err)
		}
		return trace
	}
	first := run()
	for range 10 {
		if again := run(); !slices.Equal(again, first) {
			t.Errorf("%d steps and %d steps, or another order", len(first), len(again))
		}
	}
}

// TestKilledFromOutside runs the topology in real time and kills the process of gps: the
// rest continues, and gps is restarted.
func TestKilledFromOutside(t *testing.T) {
	speed.Landing(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watch := &gpsWatch{Handler: slog.DiscardHandler, process: make(chan int, 2), back: cancel}
	topology, err := New(Processors{
		Status: func(topo.Instance) (*Status, error) { return &Status{screen: &Screen{out: t.Output()}}, nil },
	}, pool.Logger(slog.New(watch)), pool.Observe(watch))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		pid := <-watch.process
		// Before the first fix, gps would only count as a slow start.
		for topology.Snapshot().Edges[EdgeGpsFusionFix].Received == 0 {
			time.Sleep(time.Millisecond)
		}
		kill(t, pid)
	}()
	if err := topology.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if !watch.recovered {
		t.Error("gps did not recover")
	}
	faults := *topology.Snapshot().Processors[ProcessorGps].Faults
	if want := (pool.FaultFigures{Restarts: 1}); faults != want {
		t.Errorf("gps: %+v", faults)
	}
	if n := topology.Status(0).errors[Degraded].count; n == 0 {
		t.Error("gps was never missing")
	}
}

func kill(t *testing.T, pid int) {
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Error(err)
	}
}

// gpsWatch reads the process ID of gps from the log, and ends the run when its input has
// recovered.
type gpsWatch struct {
	slog.Handler
	process   chan int
	back      func()
	recovered bool
}

func (w *gpsWatch) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs is called for each process, with its processor and its process ID.
func (w *gpsWatch) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "pid" {
			select {
			case w.process <- int(a.Value.Int64()):
			default: // called once for each stream
			}
		}
	}
	return w
}

func (w *gpsWatch) InputRecovered(_ string, _ int, edge string) {
	if edge == EdgeGpsFusionFix.String() {
		w.recovered = true
		w.back()
	}
}

func (*gpsWatch) Moved(string, int, int, int)     {}
func (*gpsWatch) Finished(string)                 {}
func (*gpsWatch) Failed(string, int, error)       {}
func (*gpsWatch) Restarted(string, int)           {}
func (*gpsWatch) GaveUp(string, int, error)       {}
func (*gpsWatch) InputBroken(string, int, string) {}

// quiet discards the log of expected failures.
var quiet = pool.Logger(slog.New(slog.DiscardHandler))

func TestScreen(t *testing.T) {
	var out strings.Builder
	s := &Screen{out: &out, terminal: true}
	s.Rewrite("one")
	s.Print("news")
	s.Rewrite("two")
	s.Rewrite("")
	one, two := fmt.Sprintf(cut, "one"), fmt.Sprintf(cut, "two")
	if want := erase + one + erase + "news\n" + one + erase + two + erase; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	s = &Screen{out: &out}
	s.Rewrite("one")
	s.Print("news")
	if out.String() != "news\n" {
		t.Errorf("in a pipe: %q", out.String())
	}
}
