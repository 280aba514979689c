package starts

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

func TestMain(m *testing.M) {
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0") // or each process waits for a second before it ends
	os.Exit(m.Run())
}

// play is a topology that runs, and the folder that says what goes wrong.
type play struct {
	*testing.T
	*Topology
	folder string
	stop   context.CancelFunc
	ended  chan error
}

func begin(t *testing.T, wrong ...string) *play {
	t.Helper()
	p := &play{T: t, folder: t.TempDir(), ended: make(chan error, 1)}
	t.Setenv(Variable, p.folder)
	for _, name := range wrong {
		p.hangs(name)
	}
	top, err := New(Processors{}, pool.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	p.Topology = top
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	go func() { p.ended <- top.Run(ctx) }()
	return p
}

func (p *play) hangs(name string) { p.goesWrong(name, "hang") }

func (p *play) goesWrong(name, how string) {
	p.Helper()
	if err := os.WriteFile(filepath.Join(p.folder, name), []byte(how), 0o600); err != nil {
		p.Fatal(err)
	}
}

type asker func(context.Context, Order) (Outcome, error)

// process answers, perhaps after restarts.
func (p *play) process(ask asker) int {
	p.Helper()
	o, err := ask(p.Context(), Order{})
	if err != nil {
		p.Fatal(err)
	}
	return o.Process
}

// fail makes the instance fail.
func (p *play) fail(ask asker) {
	p.Helper()
	if _, err := ask(p.Context(), Order{Fail: true}); !errors.Is(err, topo.ErrFailed) {
		p.Errorf("%v", err)
	}
}

func (p *play) faults(processor ProcessorIndex) pool.FaultFigures {
	return *p.Snapshot().Processors[processor].Faults
}

func (p *play) end() error {
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

// TestAStartThatHangs counts the same wherever the instance runs. A goroutine is
// abandoned, a process is killed.
func TestAStartThatHangs(t *testing.T) {
	for _, when := range []string{"new", "init"} {
		t.Run(when, func(t *testing.T) {
			p := begin(t)
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
			if f := p.faults(ProcessorNear); f != (pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Abandoned: 1, Dropped: 1}) {
				t.Errorf("near: %+v", f)
			}
			if f := p.faults(ProcessorFar); f != (pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Dropped: 1}) {
				t.Errorf("far: %+v", f)
			}
			if err := p.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTheFirstStartHangs, and is given up like any other.
func TestTheFirstStartHangs(t *testing.T) {
	p := begin(t, "far-init")
	p.process(p.Api().AskOrderToFar)
	if f := p.faults(ProcessorFar); f != (pool.FaultFigures{Restarts: 1, HealthCheckKills: 1}) {
		t.Errorf("%+v", f)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// TestACloseThatHangs in a process is ended, and the next process waits for that no
// longer than CloseTimeout.
func TestACloseThatHangs(t *testing.T) {
	if os.Getenv("CI") == "" {
		t.Skip("takes long: set CI")
	}
	p := begin(t)
	ask := p.Api().AskOrderToFar
	before := p.process(ask)
	p.hangs("far-close")
	p.fail(ask)
	if now := p.process(ask); now == before {
		t.Errorf("process %d goes on", before)
	}
	p.hangs("far-close") // the last one, too
	if err := p.end(); err == nil {
		t.Error("the last Close was killed, and Run does not say so")
	}
	if f := p.faults(ProcessorFar); f.Restarts != 1 || f.GaveUp != 0 {
		t.Errorf("%+v", f)
	}
}

// TestGoexit in a process ends that process and nothing else.
func TestGoexit(t *testing.T) {
	p := begin(t)
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
	if f := p.faults(ProcessorFar); f != (pool.FaultFigures{Restarts: 2, Dropped: 2}) {
		t.Errorf("%+v", f)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}
