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

// TestIsolatedInterruptDrains checks that accepted messages are handled when the topology stops, also
// if the whole process group gets the signal.
func TestIsolatedInterruptDrains(t *testing.T) {
	p := begin(t, 20*time.Second)
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
	p := begin(t, 200*time.Millisecond)
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
		p := begin(t, 10*time.Second)
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
	p := begin(t, 10*time.Second)
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
	if err == nil || !strings.Contains(err.Error(), `processor "always", instance 0: the processor is isolated`) {
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
			p := begin(t, 10*time.Second, "failing_"+script[0], script[1])
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
	p := begin(t, 10*time.Second, "serves_serve", "odd")
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
	p := begin(t, 10*time.Second)
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
	p := begin(t, 10*time.Second)
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
	if n := len(children(t)); n != 10+7 && runtime.GOOS == "linux" {
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
	p := begin(t, 10*time.Second)
	ask := p.Api().AskOrderToFailing
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
	before := resources(t)
	kill(100)
	p.await("all is given back", func() bool { return !differs(resources(t), before) })
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// resources returns the number of child processes, open files and goroutines of this process.
func resources(t *testing.T) [3]int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return [...]int{len(children(t)), len(files), runtime.NumGoroutine()}
}

// differs reports whether the number of processes differs, or there are more files or goroutines.
func differs(now, before [3]int) bool {
	return now[0] != before[0] || now[1] > before[1] || now[2] > before[2]
}

// TestIsolatedCloseOfAStepper closes a Stepper after each number of steps, like the cleanup of
// a test that fails. No process, file or goroutine may remain.
func TestIsolatedCloseOfAStepper(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	before := resources(t)
	for steps := range speed.Pick(t, 3, 30, 30) {
		s := newReceivers(t, strings.Repeat("0 1 ", 100), nil).Stepper(uint64(steps))
		for range steps {
			s.Step()
		}
		s.Close()
		if err := s.Err(); err != nil {
			t.Errorf("after %d steps: %v", steps, err)
		}
	}
	await(t, "all is given back", func() bool { return !differs(resources(t), before) })
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
		await(t, "it is gone", func() bool { return isGone(pid) })
	}
}
