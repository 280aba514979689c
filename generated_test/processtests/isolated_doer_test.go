//go:build unix

package processtests_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/isolated"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/process"
	"github.com/topogen/topogen/runtime/topo"
)

// TestIsolatedEndsInCalls checks that any end of the process during a call counts as a failure, and
// that the policies always and on-failure start the next process.
func TestIsolatedEndsInCalls(t *testing.T) {
	p := begin(t, 10*time.Second)
	for name, ask := range map[string]asker{"always": p.Api().AskOrderToAlways, "failing": p.Api().AskOrderToFailing} {
		for _, o := range []isolated.Order{{Do: "error"}, {Do: "panic"}, {Do: "exit"}, {Do: "exit", Size: 5}, {Do: "rubbish"}} {
			before := p.pid(ask)
			p.fails(ask, o)
			if now := p.pid(ask); now == before {
				t.Errorf("%s goes on after %+v", name, o)
			}
			p.await("the process is gone", func() bool { return isGone(before) })
		}
	}
	if a, f := p.faults(isolated.ProcessorAlways), p.faults(isolated.ProcessorFailing); a.Restarts != 5 || f.Restarts != 5 {
		t.Errorf("%+v, %+v", a, f)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// TestIsolatedEndsBetweenCalls checks that any end of a process with inputs between two calls counts as
// a failure, also with exit code 0.
func TestIsolatedEndsBetweenCalls(t *testing.T) {
	p := begin(t, 10*time.Second)
	for _, o := range []isolated.Order{{Do: "exit-later", Size: 3}, {Do: "kill-later", Size: -6}, {Do: "crash-later"}, {Do: "exit-later", Size: 0}} {
		for processor, ask := range map[isolated.ProcessorIndex]asker{isolated.ProcessorAlways: p.Api().AskOrderToAlways, isolated.ProcessorFailing: p.Api().AskOrderToFailing} {
			restarts := p.faults(processor).Restarts
			outcome, err := ask(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			p.await("another is there", func() bool { return p.faults(processor).Restarts == restarts+1 })
			if p.pid(ask) == outcome.Process || !isGone(outcome.Process) {
				t.Errorf("%+v", o)
			}
		}
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	if f := p.faults(isolated.ProcessorFailing); f.Restarts != 4 || f.Dropped != 0 {
		t.Errorf("%+v", f)
	}
}

// TestIsolatedServeEnds checks that the result of Serve, or the exit code, decides about a restart.
func TestIsolatedServeEnds(t *testing.T) {
	for script, want := range map[string]struct {
		always, onFailure int // number of processes
		fails             bool
	}{
		"return": {4, 1, true}, // max_restarts: 3
		"exit 0": {4, 1, true},
		"exit 3": {4, 4, true},
		"error":  {4, 4, true},
		"panic":  {4, 4, true},
	} {
		t.Run(script, func(t *testing.T) {
			if script != "panic" {
				speed.Landing(t)
			}
			p := begin(t, 10*time.Second, "serves_serve", script, "served_serve", script)
			count := make(map[string]int)
			for range want.always + want.onFailure {
				select {
				case parcel := <-p.parcels:
					count[parcel.From]++
				case <-time.After(30 * time.Second):
					t.Fatal(count)
				}
			}
			if count["serves"] != want.always || count["served"] != want.onFailure {
				t.Error(count)
			}
			p.await("it is given up", func() bool { return strings.Contains(p.log.String(), `failed and is not restarted" processor=serves`) })
			if want.onFailure > 1 {
				p.await("it is given up", func() bool { return strings.Contains(p.log.String(), `failed and is not restarted" processor=served`) })
			}
			if err := p.end(); errors.Is(err, pool.ErrGaveUp) != want.fails {
				t.Error(err)
			}
			if len(p.parcels) > 0 {
				t.Errorf("%d more", len(p.parcels))
			}
		})
	}
}

func TestIsolatedOutput(t *testing.T) {
	long := speed.Pick(t, 1<<15, 1<<20, 1<<20)
	p := begin(t, 10*time.Second)
	if _, err := p.Api().AskOrderToFailing(t.Context(), isolated.Order{Do: "print", Size: long}); err != nil {
		t.Error(err)
	}
	pid := p.pid(p.Api().AskOrderToFailing)
	p.end()
	text := p.log.String()
	for _, want := range []string{
		fmt.Sprintf(`msg="on stdout" processor=failing instance=0 pid=%d stream=stdout`, pid),
		fmt.Sprintf("msg=\"on stderr\uFFFD[31m\" processor=failing instance=0 pid=%d stream=stderr", pid),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not logged", want)
		}
	}
	if n := strings.Count(text, "long"); n != long {
		t.Errorf("of a long line %d of %d are logged", n, long)
	}
}

func TestIsolatedMemory(t *testing.T) {
	speed.Landing(t)
	p := begin(t, 10*time.Second)
	before := p.pid(p.Api().AskOrderToFailing)
	p.fails(p.Api().AskOrderToFailing, isolated.Order{Do: "grow"})
	if p.pid(p.Api().AskOrderToFailing) == before {
		t.Error("it goes on")
	}
	if text := p.log.String(); !strings.Contains(text, process.ErrMemory.Error()) {
		t.Error(text)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// TestIsolatedHealth checks that a call that takes too long ends the process, unless it calls
// topo.Alive. The error and the log must name the hang.
func TestIsolatedHealth(t *testing.T) {
	speed.Landing(t)
	p := begin(t, 10*time.Second)
	ask := p.Api().AskOrderToAlways
	before := p.pid(ask)
	if o, err := ask(t.Context(), isolated.Order{Do: "alive"}); err != nil || o.Process != before {
		t.Errorf("%+v, %v", o, err)
	}
	began := time.Now()
	if _, err := ask(t.Context(), isolated.Order{Do: "hang"}); !errors.Is(err, topo.ErrFailed) || !errors.Is(err, pool.ErrHung) {
		t.Error(err)
	}
	if d := time.Since(began); d < 500*time.Millisecond {
		t.Errorf("after %v", d)
	}
	if p.pid(ask) == before {
		t.Error("it goes on")
	}
	if f := p.faults(isolated.ProcessorAlways); f.HealthCheckKills != 1 || f.Restarts != 1 || f.Abandoned != 0 || f.Dropped != 1 {
		t.Errorf("%+v", f)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(p.log.String(), pool.ErrHung.Error()) {
		t.Errorf("the log does not name the hang: %s", p.log.String())
	}
}

// TestIsolatedHears checks that the methods for changes of inputs run in the process, with an
// up-to-date tracker.
func TestIsolatedHears(t *testing.T) {
	p := begin(t, 10*time.Second)
	ask := p.Api().AskOrderToFailing
	silent := func(n uint64) func() bool {
		return func() bool { return p.faults(isolated.ProcessorListener).InputTimeouts == n }
	}
	parcel := func() {
		t.Helper()
		if _, err := ask(t.Context(), isolated.Order{Do: "parcel"}); err != nil {
			t.Error(err)
		}
	}
	parcel()
	p.await("silence", silent(1))
	parcel()
	p.await("recovery", func() bool { return p.faults(isolated.ProcessorListener).CircuitBreakerRecoveries == 1 })
	p.fails(ask, isolated.Order{Do: "error"})
	p.pid(ask)
	p.await("silence", silent(2))
	if err := p.end(); err != nil {
		t.Error(err)
	}
	const input = "failing -> listener: Parcel"
	want := []string{
		"parcel: open, last of failing true",
		"closed " + input + ": broken, last of failing true",
		"parcel: open, last of failing true",
		"recovered " + input + ": open, last of failing true",
		"closed " + input + ": broken, last of failing true",
		"all closed: closed, last of failing true",
		"finish: closed, last of failing true",
	}
	// A restart that takes long ends after the next silence.
	heard := p.Collector(0).Heard
	i := slices.IndexFunc(heard, func(s string) bool { return strings.HasPrefix(s, "restarted failing: ") })
	if i != 4 && i != 5 {
		t.Fatalf("%q, want one restart, after the recovery", heard)
	}
	if heard := slices.Delete(slices.Clone(heard), i, i+1); !slices.Equal(heard, want) {
		t.Errorf("%q\nwant %q", heard, want)
	}
	if marks := p.marked(); !slices.Contains(marks, "close-listener") || !slices.Contains(marks, "close-failing") {
		t.Errorf("not closed: %q", marks)
	}
}
