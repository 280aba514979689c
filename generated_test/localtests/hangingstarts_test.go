package localtests_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/generated_test/hangingstarts"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

const (
	hangingStartsTimeout = time.Second // startup_timeout of the topology
	hangingStartsDrain   = 3 * time.Second
)

// hangingStartsPlay is a topology that runs in virtual time.
type hangingStartsPlay struct {
	*testing.T
	*hangingstarts.Topology
	stop    context.CancelFunc
	ended   chan error
	forever chan struct{} // closed when the test is over
}

// playHangingStarts runs a test with a topology, in which the given calls hang.
func playHangingStarts(t *testing.T, test func(p *hangingStartsPlay), hanging ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &hangingStartsPlay{T: t, ended: make(chan error, 1), forever: make(chan struct{})}
		for _, call := range hanging {
			p.hangs(call)
		}
		top, err := hangingstarts.New(hangingstarts.Processors{}, pool.Logger(slog.New(slog.DiscardHandler)), pool.DrainTimeout(hangingStartsDrain))
		if err != nil {
			t.Fatal(err)
		}
		p.Topology = top
		ctx, stop := context.WithCancel(t.Context())
		p.stop = stop
		go func() { p.ended <- top.Run(ctx) }()
		test(p)
		close(p.forever) // the abandoned goroutines end
		synctest.Wait()
	})
}

func (p *hangingStartsPlay) hangs(call string) {
	hangingstarts.Faults.Set(call, func() { <-p.forever })
}

// ask waits for an instance that works, and returns for how long.
func (p *hangingStartsPlay) ask() time.Duration {
	p.Helper()
	began := time.Now()
	if _, err := p.Api().AskOrder(p.Context(), hangingstarts.Order{}); err != nil {
		p.Error(err)
	}
	return time.Since(began)
}

// fail makes the instance fail.
func (p *hangingStartsPlay) fail() {
	p.Helper()
	if _, err := p.Api().AskOrder(p.Context(), hangingstarts.Order{Fail: true}); !errors.Is(err, topo.ErrFailed) {
		p.Errorf("%v", err)
	}
}

func (p *hangingStartsPlay) faults(want pool.FaultFigures) {
	p.Helper()
	if f := *p.Snapshot().Processors[hangingstarts.ProcessorPart].Faults; f != want {
		p.Errorf("%+v, want %+v", f, want)
	}
}

// end stops the topology, and returns how long Run takes to return, and its result.
func (p *hangingStartsPlay) end() (took time.Duration, err error) {
	began := time.Now()
	p.stop()
	err = <-p.ended
	return time.Since(began), err
}

// TestHangingStartsRestart checks that a hanging start counts as a failure and is abandoned
// at its timeout.
func TestHangingStartsRestart(t *testing.T) {
	for _, call := range []string{"new", "init"} {
		t.Run(call, func(t *testing.T) {
			playHangingStarts(t, func(p *hangingStartsPlay) {
				p.ask()
				p.hangs(call)
				p.fail()
				if took := p.ask(); took != hangingStartsTimeout {
					p.Errorf("the next instance works after %v", took)
				}
				p.faults(pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Abandoned: 1, Dropped: 1})
				if _, err := p.end(); err != nil {
					p.Error(err)
				}
			})
		})
	}
}

// TestHangingStartsFirst checks that the first start also has a timeout.
func TestHangingStartsFirst(t *testing.T) {
	playHangingStarts(t, func(p *hangingStartsPlay) {
		if took := p.ask(); took != hangingStartsTimeout {
			p.Errorf("the next instance works after %v", took)
		}
		p.faults(pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Abandoned: 1})
		if _, err := p.end(); err != nil {
			p.Error(err)
		}
	}, "init")
}

// TestHangingStartsClose checks that a hanging Close delays the next instance only shortly, and
// Run only for the timeout of Close. Both are abandoned.
func TestHangingStartsClose(t *testing.T) {
	playHangingStarts(t, func(p *hangingStartsPlay) {
		p.ask()
		p.hangs("close")
		p.fail()
		if took := p.ask(); took > hangingStartsDrain/10 {
			p.Errorf("the next instance works after %v", took)
		}
		p.faults(pool.FaultFigures{Restarts: 1, Dropped: 1})
		<-time.After(hangingStartsDrain + time.Millisecond)
		p.faults(pool.FaultFigures{Restarts: 1, Abandoned: 1, Dropped: 1})
		p.hangs("close")
		took, err := p.end()
		if !errors.Is(err, pool.ErrCloseHangs) || took != hangingStartsDrain {
			p.Errorf("after %v Run returns %v", took, err)
		}
		p.faults(pool.FaultFigures{Restarts: 1, Abandoned: 2, Dropped: 1})
	})
}
