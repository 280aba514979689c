//go:build unix

package processtests_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/isolated"
	"github.com/topogen/topogen/generated_test/isolated/far"
	"github.com/topogen/topogen/generated_test/kills"
	"github.com/topogen/topogen/internal/test/child"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/process"
	"github.com/topogen/topogen/runtime/topo"
)

// TestIsolatedEndsInCalls checks that any end of the process during a call counts as a failure, and
// that the policies always and on-failure start the next process.
func TestIsolatedEndsInCalls(t *testing.T) {
	p := isolatedBegin(t, 10*time.Second)
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

// TestIsolatedEndsBetweenCalls checks that between calls the exit code or the signal decides whether
// the end is a failure.
func TestIsolatedEndsBetweenCalls(t *testing.T) {
	p := isolatedBegin(t, 10*time.Second)
	for _, o := range []isolated.Order{{Do: "exit-later", Size: 3}, {Do: "kill-later", Size: -6}, {Do: "crash-later"}, {Do: "exit-later", Size: 0}} {
		for processor, ask := range map[isolated.ProcessorIndex]asker{isolated.ProcessorAlways: p.Api().AskOrderToAlways, isolated.ProcessorFailing: p.Api().AskOrderToFailing} {
			if processor == isolated.ProcessorFailing && o.Do == "exit-later" && o.Size == 0 {
				continue
			}
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
	if f := p.faults(isolated.ProcessorFailing); f.Restarts != 3 {
		t.Errorf("%+v", f)
	}
}

// TestIsolatedCleanEndStays checks that on-failure starts no process after exit code 0 between
// calls. Later messages to the processor are dropped, and its receivers get InputClosed.
func TestIsolatedCleanEndStays(t *testing.T) {
	p := isolatedBegin(t, 10*time.Second)
	ask := p.Api().AskOrderToFailing
	outcome, err := ask(t.Context(), isolated.Order{Do: "exit-later"})
	if err != nil {
		t.Fatal(err)
	}
	p.await("the process is gone", func() bool { return isGone(outcome.Process) })
	p.await("the end is noticed", func() bool { return strings.Contains(p.log.String(), "the process of an instance has ended") })
	p.fails(ask, isolated.Order{})
	if f := p.faults(isolated.ProcessorFailing); f.Restarts != 0 {
		t.Errorf("%+v", f)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	if heard := p.Collector(0).Heard; !slices.Contains(heard, "all closed: closed, last of  false") {
		t.Errorf("%q", heard)
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
			p := isolatedBegin(t, 10*time.Second, "serves_serve", script, "served_serve", script)
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
	p := isolatedBegin(t, 10*time.Second)
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
	p := isolatedBegin(t, 10*time.Second)
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
// topo.Alive.
func TestIsolatedHealth(t *testing.T) {
	speed.Landing(t)
	p := isolatedBegin(t, 10*time.Second)
	ask := p.Api().AskOrderToAlways
	before := p.pid(ask)
	if o, err := ask(t.Context(), isolated.Order{Do: "alive"}); err != nil || o.Process != before {
		t.Errorf("%+v, %v", o, err)
	}
	began := time.Now()
	p.fails(ask, isolated.Order{Do: "hang"})
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
}

// TestIsolatedHears checks that the methods for changes of inputs run in the process, with an
// up-to-date tracker.
func TestIsolatedHears(t *testing.T) {
	p := isolatedBegin(t, 10*time.Second)
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
		"restarted failing: open, last of failing true",
		"closed " + input + ": broken, last of failing true",
		"all closed: closed, last of failing true",
		"finish: closed, last of failing true",
	}
	if heard := p.Collector(0).Heard; !slices.Equal(heard, want) {
		t.Errorf("%q\nwant %q", heard, want)
	}
	if marks := p.marked(); !slices.Contains(marks, "close-listener") || !slices.Contains(marks, "close-failing") {
		t.Errorf("not closed: %q", marks)
	}
}

// TestIsolatedInterruptDrains checks that accepted messages are handled when the topology stops, also
// if the whole process group gets the signal.
func TestIsolatedInterruptDrains(t *testing.T) {
	p := isolatedBegin(t, 20*time.Second)
	var pids []int
	for _, ask := range []asker{p.Api().AskOrderToFailing, p.Api().AskOrderToSkipping} {
		pids = append(pids, p.pid(ask))
	}
	for i := range 200 {
		o := isolated.Order{Do: "parcel"}
		if i == 0 {
			o = isolated.Order{Do: "slow", Size: int(100 * time.Millisecond)}
		}
		send := p.Api().AskOrderToFailing
		if i%2 == 1 {
			send = p.Api().AskOrderToSkipping
		}
		go send(t.Context(), o)
	}
	p.await("they are sent", func() bool {
		s := p.Snapshot()
		return s.Edges[isolated.EdgeApiFailingOrder].Sent+s.Edges[isolated.EdgeApiSkippingOrder].Sent == 203
	})
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGINT)
		syscall.Kill(pid, syscall.SIGTERM)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	n := 0
	for len(p.parcels) > 0 {
		if parcel := <-p.parcels; parcel.From == "failing" || parcel.From == "skipping" {
			n++
		}
	}
	if n != 199 {
		t.Errorf("%d of 199 parcels", n)
	}
}

// TestIsolatedGivesUp checks that after the drain timeout the contexts of handlers end, and that
// processes with handlers that continue are killed.
func TestIsolatedGivesUp(t *testing.T) {
	speed.Landing(t)
	p := isolatedBegin(t, 200*time.Millisecond)
	hangs, waits := p.pid(p.Api().AskOrderToSkipping), p.pid(p.Api().AskOrderToFailing)
	go p.Api().AskOrderToSkipping(t.Context(), isolated.Order{Do: "hang"})
	go p.Api().AskOrderToFailing(t.Context(), isolated.Order{Do: "wait"})
	p.await("it waits", func() bool { return slices.Contains(p.marked(), "waits") })
	p.await("it hangs", func() bool { return p.Snapshot().Edges[isolated.EdgeApiSkippingOrder].Received == 3 })
	if err := p.end(); !errors.Is(err, pool.ErrDrainTimeout) {
		t.Error(err)
	}
	p.await("both are gone", func() bool { return isGone(hangs) && isGone(waits) })
	if !slices.Contains(p.marked(), "context-ended") {
		t.Errorf("%q", p.marked())
	}
}

// TestIsolatedStopsWhileStarting checks that a process ends if it starts while the topology ends.
func TestIsolatedStopsWhileStarting(t *testing.T) {
	speed.Landing(t)
	for i := range 30 {
		p := isolatedBegin(t, 10*time.Second)
		syscall.Kill(p.pid(p.Api().AskOrderToFailing), syscall.SIGKILL)
		<-time.After(time.Duration(i%10) * time.Millisecond)
		err := p.end()
		exit, killed := errors.AsType[*process.ExitError](err) // noticed by Close
		if err != nil && !errors.Is(err, pool.ErrGaveUp) && !(killed && exit.Exit.Signal == "SIGKILL" && exit.Processor == "failing") {
			t.Error(err)
		}
	}
}

// TestIsolatedErrorEndsAll checks that an error that ends Run leaves no process behind.
func TestIsolatedErrorEndsAll(t *testing.T) {
	p := isolatedBegin(t, 10*time.Second)
	pid := p.pid(p.Api().AskOrderToAlways)
	if _, err := p.Api().AskFarQuestion(t.Context(), far.Question{N: 1}); err != nil {
		t.Fatal(err)
	}
	r, err := p.Api().AskFarQuestion(t.Context(), far.Question{N: 2})
	if err != nil || r.N != 3 || r.Process == os.Getpid() {
		t.Errorf("%+v %v", r, err)
	}
	syscall.Kill(r.Process, syscall.SIGKILL) // restart: never
	err = p.wait()
	if exit, ok := errors.AsType[*process.ExitError](err); !ok || exit.Exit.Signal != "SIGKILL" || exit.Processor != "far" {
		t.Error(err)
	}
	p.await("the others are gone", func() bool { return isGone(pid) })
}

func TestIsolatedConstructorsAreRefused(t *testing.T) {
	_, err := isolated.New(isolated.Processors{Always: func(topo.Instance) (*isolated.Doer, error) { return new(isolated.Doer), nil }})
	if err == nil || !strings.Contains(err.Error(), `"always" is isolated`) {
		t.Error(err)
	}
}

// TestIsolatedStartFails checks that a constructor or Init that fails, or ends the process, counts as
// a failure.
func TestIsolatedStartFails(t *testing.T) {
	for _, script := range [][]string{{"new", "error"}, {"new", "panic"}, {"new", "exit"}, {"init", "error"}} {
		t.Run(strings.Join(script, " "), func(t *testing.T) {
			if script[1] != "exit" {
				speed.Landing(t)
			}
			p := isolatedBegin(t, 10*time.Second, "failing_"+script[0], script[1])
			p.await("some attempts", func() bool {
				n := 0
				for _, m := range p.marked() {
					if m == "new-failing" {
						n++
					}
				}
				return n > 3
			})
			os.Unsetenv("ISOLATED_FAILING_" + strings.ToUpper(script[0]))
			p.pid(p.Api().AskOrderToFailing)
			if f := p.faults(isolated.ProcessorFailing); f.Restarts != 1 || f.Dropped != 0 {
				t.Errorf("%+v", f)
			}
			if err := p.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestIsolatedWhatCannotBeWritten checks that a value that cannot be encoded is an error of the
// handler or of the send, and does not end the process.
func TestIsolatedWhatCannotBeWritten(t *testing.T) {
	speed.Landing(t)
	p := isolatedBegin(t, 10*time.Second, "serves_serve", "odd")
	ask := p.Api().AskOrderToSkipping
	pid := p.pid(ask)
	if _, err := ask(t.Context(), isolated.Order{Load: strings.Repeat("x", process.MessageLimitDefault)}); !errors.Is(err, process.ErrTooLarge) || errors.Is(err, topo.ErrFailed) {
		t.Error(err)
	}
	for _, o := range []isolated.Order{{Do: "odd-reply"}, {Do: "odd-parcel"}, {Do: "parcel", Size: process.MessageLimitDefault + 1}} {
		p.fails(ask, o)
		if now := p.pid(ask); now != pid {
			t.Errorf("%s: process %d in place of %d", o.Do, now, pid)
		}
	}
	if f := p.faults(isolated.ProcessorSkipping); f.Restarts != 0 || f.Dropped != 3 {
		t.Errorf("%+v", f)
	}
	if o, err := ask(t.Context(), isolated.Order{Do: "parcel", Size: process.MessageLimitDefault - 1000}); err != nil {
		t.Errorf("%+v %v", o, err)
	}
	served := 0
	p.await("Serve has gone on", func() bool {
		select {
		case parcel := <-p.parcels:
			if parcel.From == "skipping" && len(parcel.Load) != process.MessageLimitDefault-1000 {
				t.Errorf("%s sent %d, %d bytes", parcel.From, parcel.Process, len(parcel.Load))
			}
			if parcel.From == "serves" && parcel.Process == -1 {
				served++
			}
		default:
		}
		return served > 0
	})
	p.end() // the processor serves has ended too often
}

// TestIsolatedHostile checks that a handler that damages the connection ends its process, and that
// the children of the process end too.
func TestIsolatedHostile(t *testing.T) {
	p := isolatedBegin(t, 10*time.Second)
	ask := p.Api().AskOrderToFailing
	pid := p.pid(ask)
	p.fails(ask, isolated.Order{Do: "close-files"})
	p.await("it is gone", func() bool { return isGone(pid) })
	o, err := ask(t.Context(), isolated.Order{Do: "start"})
	if err != nil {
		t.Fatal(err)
	}
	grandchild, _ := strconv.Atoi(o.Text)
	if isGone(grandchild) {
		t.Error("it has not started")
	}
	p.fails(ask, isolated.Order{Do: "exit"})
	p.await("what it had started is gone", func() bool { return isGone(grandchild) })
	o, err = ask(t.Context(), isolated.Order{Do: "start"})
	if err != nil {
		t.Fatal(err)
	}
	grandchild, _ = strconv.Atoi(o.Text)
	if err := p.end(); err != nil {
		t.Error(err)
	}
	p.await("what it had started is gone", func() bool { return isGone(grandchild) })
}

// TestIsolatedTwoTopologies checks that two topologies in one executable do not confuse their
// processes.
func TestIsolatedTwoTopologies(t *testing.T) {
	speed.Landing(t) // each test here is in a program with several topologies
	ledger := filepath.Join(t.TempDir(), "ledger")
	if err := os.WriteFile(ledger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(kills.LedgerVariable, ledger)
	p := isolatedBegin(t, 10*time.Second)
	top, err := kills.New(kills.Processors{}, pool.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- top.Run(ctx) }()
	p.pid(p.Api().AskOrderToFailing)
	a, err := top.Api().AskQuery(ctx, kills.Query{ID: 7})
	if err != nil || a.ID != 7 {
		t.Errorf("%+v %v", a, err)
	}
	if n := len(isolatedChildren(t)); n != 10+7 && runtime.GOOS == "linux" {
		t.Errorf("%d processes", n)
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, pool.ErrGaveUp) { // its processors misbehave
		t.Error(err)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// TestIsolatedNothingLeaks checks files, goroutines and processes after many restarts.
func TestIsolatedNothingLeaks(t *testing.T) {
	speed.Landing(t)
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	p := isolatedBegin(t, 10*time.Second)
	ask := p.Api().AskOrderToFailing
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	kill := func(times int) {
		t.Helper()
		for range times {
			restarts := p.faults(isolated.ProcessorFailing).Restarts
			syscall.Kill(p.pid(ask), syscall.SIGKILL)
			p.await("another is there", func() bool { return p.faults(isolated.ProcessorFailing).Restarts > restarts })
		}
	}
	p.pid(p.Api().AskOrderToAlways)
	kill(10)
	processes, fds, goroutines := len(isolatedChildren(t)), files(), runtime.NumGoroutine()
	kill(100)
	p.await("all is given back", func() bool {
		return len(isolatedChildren(t)) == processes && files() <= fds && runtime.NumGoroutine() <= goroutines
	})
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// runParent is the parent process of TestIsolatedParentDies.
func runParent() error {
	top, err := isolated.New(isolated.Processors{})
	if err != nil {
		return err
	}
	go top.Run(context.Background())
	for _, ask := range []asker{top.Api().AskOrderToFailing, top.Api().AskOrderToAlways} {
		o, err := ask(context.Background(), isolated.Order{})
		if err != nil {
			return err
		}
		fmt.Println(o.Process)
	}
	go top.Api().AskOrderToFailing(context.Background(), isolated.Order{Do: "hang"})
	fmt.Println("ready")
	select {}
}

// TestIsolatedParentDies checks that all processes end with their parent.
func TestIsolatedParentDies(t *testing.T) {
	parent := child.Command(childParent)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for range 2 {
		var pid int
		if _, err := fmt.Fscan(out, &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	fmt.Fscan(out, new(string))
	parent.Process.Kill()
	parent.Wait()
	for _, pid := range pids {
		isolatedAwait(t, "it is gone", func() bool { return isGone(pid) })
	}
}
