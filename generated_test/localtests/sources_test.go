package localtests_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/generated_test/sources"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

var errSources = errors.New("told to fail")

// playSources runs one of the processors in virtual time, and returns the times of its items.
func playSources(t *testing.T, s *sources.Script, last time.Duration) (at []time.Duration, faults pool.FaultFigures, err error) {
	t.Helper()
	s.Begun, s.Counts = time.Now(), make(map[string]int)
	sources.Current = s
	top, err := sources.New(sources.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), last)
	defer cancel()
	err = top.Run(ctx)
	for _, item := range s.Items {
		at = append(at, item.At)
	}
	return at, *top.Snapshot().Faults, err
}

func wantItemsSources(t *testing.T, got []time.Duration, want ...time.Duration) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("items at %v, want %v", got, want)
	}
}

// TestSourcesBatches checks that the policy always restarts a source after topo.Done with a constant
// delay, until the topology stops.
func TestSourcesBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, faults, err := playSources(t, &sources.Script{Who: "batch", Serve: func(_ context.Context, send func() error, _ int) error { return send() }}, 3500*time.Millisecond)
		if err != nil {
			t.Error(err)
		}
		wantItemsSources(t, at, 0, time.Second, 2*time.Second, 3*time.Second)
		if faults != (pool.FaultFigures{Restarts: 3}) {
			t.Errorf("%+v", faults)
		}
	})
}

// TestSourcesCleanEndsHaveALimit checks that max_restarts also bounds restarts after a clean end.
func TestSourcesCleanEndsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, faults, err := playSources(t, &sources.Script{Who: "limited", Serve: func(_ context.Context, send func() error, _ int) error { return send() }}, time.Second)
		if !errors.Is(err, pool.ErrGaveUp) {
			t.Error(err)
		}
		wantItemsSources(t, at, 0, 0, 0)
		if faults.Restarts != 2 {
			t.Errorf("%+v", faults)
		}
	})
}

// TestSourcesServeThatIsAlive checks that sends, topo.Alive and waiting for room keep Serve alive, and
// that it is ended without them.
func TestSourcesServeThatIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 90 * time.Millisecond
		forever := make(chan struct{})
		at, faults, err := playSources(t, &sources.Script{Who: "server", Serve: func(ctx context.Context, send func() error, n int) error {
			for range 3 {
				<-time.After(most)
				if err := send(); err != nil {
					return err
				}
				<-time.After(most)
				topo.Alive(ctx)
			}
			if n == 1 {
				<-forever
			}
			return nil
		}}, 5*time.Second)
		close(forever)
		synctest.Wait()
		if err != nil {
			t.Error(err)
		}
		ms := time.Millisecond
		wantItemsSources(t, at, 90*ms, 270*ms, 450*ms, 730*ms, 910*ms, 1090*ms) // it is ended 100 ms after its last sign of life
		if faults != (pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Abandoned: 1}) {
			t.Errorf("%+v", faults)
		}
	})
}

// TestSourcesPingThatHangs checks that a Ping that hangs or fails is restarted, and that its earlier
// messages are delivered.
func TestSourcesPingThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		at, faults, err := playSources(t, &sources.Script{Who: "pinger", Ping: func(ctx context.Context, send func() error, n int) error {
			switch n {
			case 2:
				return errSources
			case 4:
				<-forever
				return send() // the send ends the abandoned goroutine
			case 6:
				return topo.Done
			}
			<-time.After(20 * time.Millisecond)
			return send()
		}}, 5*time.Second)
		close(forever)
		synctest.Wait()
		if err != nil {
			t.Error(err)
		}
		ms := time.Millisecond
		wantItemsSources(t, at, 20*ms, 40*ms, 160*ms)
		if faults != (pool.FaultFigures{Restarts: 2, HealthCheckKills: 1, Abandoned: 1}) {
			t.Errorf("%+v", faults)
		}
	})
}

// TestSourcesASlowStart checks that a slow start is abandoned at its deadline, and that a failed start
// counts as a failure.
func TestSourcesASlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		defer close(forever)
		at, faults, err := playSources(t, &sources.Script{Who: "slow",
			Make: func(n int) error {
				if n == 2 {
					<-forever
				}
				return nil
			},
			Serve: func(_ context.Context, send func() error, n int) error {
				if err := send(); err != nil {
					return err
				}
				if n == 1 {
					return errSources
				}
				return nil
			}}, 5*time.Second)
		if err != nil {
			t.Error(err)
		}
		wantItemsSources(t, at, 0, 100*time.Millisecond)
		if faults != (pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Abandoned: 1}) {
			t.Errorf("%+v", faults)
		}
	})
}
