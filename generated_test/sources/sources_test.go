package sources

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

var errTold = errors.New("told to fail")

// play runs one of the processors in virtual time, and returns the times of its items.
func play(t *testing.T, s *Script, last time.Duration) (at []time.Duration, faults pool.FaultFigures, err error) {
	t.Helper()
	s.begun, s.counts = time.Now(), make(map[string]int)
	script = s
	top, err := New(Processors{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), last)
	defer cancel()
	err = top.Run(ctx)
	for _, item := range s.items {
		at = append(at, item.At)
	}
	return at, *top.Snapshot().Faults, err
}

func wantItems(t *testing.T, got []time.Duration, want ...time.Duration) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("items at %v, want %v", got, want)
	}
}

// TestBatches checks that the policy always restarts a source after topo.Done with a constant
// delay, until the topology stops.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, faults, err := play(t, &Script{who: "batch", serve: func(_ context.Context, send func() error, _ int) error { return send() }}, 3500*time.Millisecond)
		if err != nil {
			t.Error(err)
		}
		wantItems(t, at, 0, time.Second, 2*time.Second, 3*time.Second)
		if faults != (pool.FaultFigures{Restarts: 3}) {
			t.Errorf("%+v", faults)
		}
	})
}

// TestCleanEndsHaveALimit checks that max_restarts also bounds restarts after a clean end.
func TestCleanEndsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, faults, err := play(t, &Script{who: "limited", serve: func(_ context.Context, send func() error, _ int) error { return send() }}, time.Second)
		if !errors.Is(err, pool.ErrGaveUp) {
			t.Error(err)
		}
		wantItems(t, at, 0, 0, 0)
		if faults.Restarts != 2 {
			t.Errorf("%+v", faults)
		}
	})
}

// TestServeThatIsAlive checks that sends, topo.Alive and waiting for room keep Serve alive, and
// that it is ended without them.
func TestServeThatIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 90 * time.Millisecond
		forever := make(chan struct{})
		at, faults, err := play(t, &Script{who: "server", serve: func(ctx context.Context, send func() error, n int) error {
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
		wantItems(t, at, 90*ms, 270*ms, 450*ms, 730*ms, 910*ms, 1090*ms) // it is ended 100 ms after its last sign of life
		if faults != (pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Abandoned: 1}) {
			t.Errorf("%+v", faults)
		}
	})
}

// TestPingThatHangs checks that a Ping that hangs or fails is restarted, and that its earlier
// messages are delivered.
func TestPingThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		at, faults, err := play(t, &Script{who: "pinger", ping: func(ctx context.Context, send func() error, n int) error {
			switch n {
			case 2:
				return errTold
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
		wantItems(t, at, 20*ms, 40*ms, 160*ms)
		if faults != (pool.FaultFigures{Restarts: 2, HealthCheckKills: 1, Abandoned: 1}) {
			t.Errorf("%+v", faults)
		}
	})
}

// TestASlowStart checks that a slow start is abandoned at its deadline, and that a failed start
// counts as a failure.
func TestASlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		defer close(forever)
		at, faults, err := play(t, &Script{who: "slow",
			make: func(n int) error {
				if n == 2 {
					<-forever
				}
				return nil
			},
			serve: func(_ context.Context, send func() error, n int) error {
				if err := send(); err != nil {
					return err
				}
				if n == 1 {
					return errTold
				}
				return nil
			}}, 5*time.Second)
		if err != nil {
			t.Error(err)
		}
		wantItems(t, at, 0, 100*time.Millisecond)
		if faults != (pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Abandoned: 1}) {
			t.Errorf("%+v", faults)
		}
	})
}
