//go:build unix

package processtests_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/hangingprocesses"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// hangingProcessesPlay is a running topology with its folder of faults.
type hangingProcessesPlay struct {
	*testing.T
	*hangingprocesses.Topology
	folder string
	stop   context.CancelFunc
	ended  chan error
}

// beginHangingProcesses starts a topology, in which the given calls hang.
func beginHangingProcesses(t *testing.T, drain time.Duration, hanging ...string) *hangingProcessesPlay {
	t.Helper()
	p := &hangingProcessesPlay{T: t, folder: t.TempDir(), ended: make(chan error, 1)}
	t.Setenv(hangingprocesses.Variable, p.folder)
	for _, call := range hanging {
		p.goesWrong(call, "hang")
	}
	top, err := hangingprocesses.New(hangingprocesses.Processors{}, pool.Logger(slog.New(slog.DiscardHandler)), pool.DrainTimeout(drain))
	if err != nil {
		t.Fatal(err)
	}
	p.Topology = top
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	go func() { p.ended <- top.Run(ctx) }()
	return p
}

func (p *hangingProcessesPlay) goesWrong(call, how string) {
	p.Helper()
	if err := os.WriteFile(filepath.Join(p.folder, call), []byte(how), 0o600); err != nil {
		p.Fatal(err)
	}
}

// ask asks for the ID of the process that runs the instance.
func (p *hangingProcessesPlay) ask() int {
	p.Helper()
	o, err := p.Api().AskOrder(p.Context(), hangingprocesses.Order{})
	if err != nil {
		p.Fatal(err)
	}
	return o.Process
}

// fail makes the instance fail.
func (p *hangingProcessesPlay) fail() {
	p.Helper()
	if _, err := p.Api().AskOrder(p.Context(), hangingprocesses.Order{Fail: true}); !errors.Is(err, topo.ErrFailed) {
		p.Errorf("%v", err)
	}
}

func (p *hangingProcessesPlay) faults(want pool.FaultFigures) {
	p.Helper()
	if f := *p.Snapshot().Processors[hangingprocesses.ProcessorPart].Faults; f != want {
		p.Errorf("%+v, want %+v", f, want)
	}
}

func (p *hangingProcessesPlay) end() error {
	p.Helper()
	p.stop()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(time.Minute):
		p.Fatal("Run does not return")
		return nil
	}
}

// untilGone waits until a process has ended.
func (p *hangingProcessesPlay) untilGone(process int) {
	p.Helper()
	for deadline := time.Now().Add(30 * time.Second); syscall.Kill(process, 0) == nil; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatalf("process %d does not end", process)
		}
	}
}

// TestHangingProcessesRestart checks that a hanging start counts as a failure, and that its
// process is killed at its timeout.
func TestHangingProcessesRestart(t *testing.T) {
	speed.Landing(t) // a startup_timeout must be longer than the start of a process on a busy host
	for _, call := range []string{"new", "init"} {
		t.Run(call, func(t *testing.T) {
			p := beginHangingProcesses(t, time.Minute)
			before := p.ask()
			p.goesWrong(call, "hang")
			p.fail()
			if now := p.ask(); now == before {
				t.Errorf("process %d goes on", before)
			}
			p.faults(pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Dropped: 1})
			if err := p.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHangingProcessesFirst checks that the first start also has a timeout.
func TestHangingProcessesFirst(t *testing.T) {
	speed.Landing(t) // a startup_timeout must be longer than the start of a process on a busy host
	p := beginHangingProcesses(t, time.Minute, "init")
	p.ask()
	p.faults(pool.FaultFigures{Restarts: 1, HealthCheckKills: 1})
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// TestHangingProcessesClose checks that a hanging Close delays the next instance only shortly,
// and Run only for the timeout of Close. Both processes are killed.
func TestHangingProcessesClose(t *testing.T) {
	speed.Landing(t) // Close may take a second, whatever the drain timeout is
	p := beginHangingProcesses(t, time.Millisecond)
	before := p.ask()
	p.goesWrong("close", "hang")
	p.fail()
	after := p.ask()
	p.untilGone(before)
	p.goesWrong("close", "hang")
	if err := p.end(); !errors.Is(err, pool.ErrCloseHangs) {
		t.Error(err)
	}
	p.untilGone(after)
	p.faults(pool.FaultFigures{Restarts: 1, Dropped: 1})
}

// TestHangingProcessesGoexit checks that runtime.Goexit in a process ends only that process.
func TestHangingProcessesGoexit(t *testing.T) {
	p := beginHangingProcesses(t, time.Minute)
	before := p.ask()
	p.goesWrong("close", "goexit")
	p.goesWrong("new", "goexit")
	p.fail()
	after := p.ask()
	if after == before {
		t.Errorf("process %d goes on", before)
	}
	p.goesWrong("init", "goexit")
	p.fail()
	if now := p.ask(); now == after {
		t.Errorf("process %d goes on", after)
	}
	p.faults(pool.FaultFigures{Restarts: 2, Dropped: 2})
	if err := p.end(); err != nil {
		t.Error(err)
	}
}
