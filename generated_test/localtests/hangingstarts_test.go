//go:build unix

package localtests_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/hangingstarts"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// hangingStartsPlay is a running topology with its folder of faults.
type hangingStartsPlay struct {
	*testing.T
	*hangingstarts.Topology
	folder string
	stop   context.CancelFunc
	ended  chan error
}

func beginHangingStarts(t *testing.T, wrong ...string) *hangingStartsPlay {
	t.Helper()
	p := &hangingStartsPlay{T: t, folder: t.TempDir(), ended: make(chan error, 1)}
	t.Setenv(hangingstarts.Variable, p.folder)
	for _, name := range wrong {
		p.hangs(name)
	}
	top, err := hangingstarts.New(hangingstarts.Processors{}, pool.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	p.Topology = top
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	go func() { p.ended <- top.Run(ctx) }()
	return p
}

func (p *hangingStartsPlay) hangs(name string) { p.goesWrong(name, "hang") }

func (p *hangingStartsPlay) goesWrong(name, how string) {
	p.Helper()
	if err := os.WriteFile(filepath.Join(p.folder, name), []byte(how), 0o600); err != nil {
		p.Fatal(err)
	}
}

type hangingStartsAsker func(context.Context, hangingstarts.Order) (hangingstarts.Outcome, error)

// process asks for the process ID of an instance, and retries during restarts.
func (p *hangingStartsPlay) process(ask hangingStartsAsker) int {
	p.Helper()
	o, err := ask(p.Context(), hangingstarts.Order{})
	if err != nil {
		p.Fatal(err)
	}
	return o.Process
}

// fail makes the instance fail.
func (p *hangingStartsPlay) fail(ask hangingStartsAsker) {
	p.Helper()
	if _, err := ask(p.Context(), hangingstarts.Order{Fail: true}); !errors.Is(err, topo.ErrFailed) {
		p.Errorf("%v", err)
	}
}

func (p *hangingStartsPlay) faults(processor hangingstarts.ProcessorIndex) pool.FaultFigures {
	return *p.Snapshot().Processors[processor].Faults
}

func (p *hangingStartsPlay) end() error {
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

// TestHangingStartsAStartThatHangs checks that a hanging start counts as a failure in a goroutine, which
// is abandoned, and in a process, which is killed.
func TestHangingStartsAStartThatHangs(t *testing.T) {
	for _, when := range []string{"new", "init"} {
		t.Run(when, func(t *testing.T) {
			p := beginHangingStarts(t)
			p.process(p.Api().AskOrderToNear)
			before := p.process(p.Api().AskOrderToFar)
			p.hangs("near-" + when)
			p.hangs("far-" + when)
			p.fail(p.Api().AskOrderToNear)
			p.fail(p.Api().AskOrderToFar)
			p.process(p.Api().AskOrderToNear)
			if now := p.process(p.Api().AskOrderToFar); now == before {
				t.Errorf("process %d goes on", before)
			}
			if f := p.faults(hangingstarts.ProcessorNear); f != (pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Abandoned: 1, Dropped: 1}) {
				t.Errorf("near: %+v", f)
			}
			if f := p.faults(hangingstarts.ProcessorFar); f != (pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Dropped: 1}) {
				t.Errorf("far: %+v", f)
			}
			if err := p.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHangingStartsTheFirstStartHangs checks that the first start also has a timeout.
func TestHangingStartsTheFirstStartHangs(t *testing.T) {
	p := beginHangingStarts(t, "far-init")
	p.process(p.Api().AskOrderToFar)
	if f := p.faults(hangingstarts.ProcessorFar); f != (pool.FaultFigures{Restarts: 1, HealthCheckKills: 1}) {
		t.Errorf("%+v", f)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// TestHangingStartsACloseThatHangs checks that a hanging Close delays the next instance only shortly, and
// Run only for the timeout of Close. A goroutine is abandoned, a process is killed.
func TestHangingStartsACloseThatHangs(t *testing.T) {
	t.Setenv("TOPOGEN_DRAIN_TIMEOUT", "1s")
	for name, want := range map[string]pool.FaultFigures{
		"near": {Restarts: 1, Abandoned: 2, Dropped: 1},
		"far":  {Restarts: 1, Dropped: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := beginHangingStarts(t)
			ask, processor := p.Api().AskOrderToNear, hangingstarts.ProcessorNear
			if name == "far" {
				ask, processor = p.Api().AskOrderToFar, hangingstarts.ProcessorFar
			}
			before := p.process(ask)
			p.hangs(name + "-close")
			p.fail(ask)
			after := p.process(ask)
			untilHangingStarts(t, "the first Close is given up", func() bool {
				if name == "far" {
					return syscall.Kill(before, 0) != nil
				}
				return p.faults(processor).Abandoned == 1
			})
			p.hangs(name + "-close")
			if err := p.end(); !errors.Is(err, pool.ErrCloseHangs) {
				t.Error(err)
			}
			if name == "far" {
				untilHangingStarts(t, "the last process is gone", func() bool { return syscall.Kill(after, 0) != nil })
			}
			if f := p.faults(processor); f != want {
				t.Errorf("%+v, want %+v", f, want)
			}
		})
	}
}

// untilHangingStarts waits for a condition.
func untilHangingStarts(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestHangingStartsGoexit checks that runtime.Goexit in a process ends only that process.
func TestHangingStartsGoexit(t *testing.T) {
	p := beginHangingStarts(t)
	ask := p.Api().AskOrderToFar
	before := p.process(ask)
	p.goesWrong("far-close", "goexit")
	p.goesWrong("far-new", "goexit")
	p.fail(ask)
	after := p.process(ask)
	if after == before {
		t.Errorf("process %d goes on", before)
	}
	p.goesWrong("far-init", "goexit")
	p.fail(ask)
	if now := p.process(ask); now == after {
		t.Errorf("process %d goes on", after)
	}
	if f := p.faults(hangingstarts.ProcessorFar); f != (pool.FaultFigures{Restarts: 2, Dropped: 2}) {
		t.Errorf("%+v", f)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}
