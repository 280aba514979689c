package edges

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/piper"
)

// slowDisk is a store whose commits wait for the disk.
type slowDisk struct {
	store.Store
	sync func() error // nil: syncs take no time
}

func (d *slowDisk) Update(f func(store.Tx) error) error {
	return d.Store.Update(func(tx store.Tx) error {
		if err := f(tx); err != nil || !tx.Changed() || d.sync == nil {
			return err
		}
		return d.sync()
	})
}

// outside is a sender that belongs to no processor.
type outside struct{ edges piper.DurableEdges }

func (o outside) Durable() piper.DurableEdges { return o.edges }

// carrierOn returns a sender along the edge 0, whose store is on the disk. Executions do not run.
func carrierOn(t *testing.T, disk *slowDisk) outside {
	t.Helper()
	m := NewMemory()
	m.kept = disk
	e, err := Open(Config{Topology: "shop", Lease: time.Minute, Edges: []Edge{{Function: "api.worker.Job", Handler: To(1,
		func(*string) int { return 0 }, func(int) Instance { return Instance{} }, func(int, durable.Context, *string) (any, error) { return nil, nil })}}},
		piper.DurableSettings{Memory: m, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.End)
	return outside{e}
}

// TestASendAwaitsItsCommit: a send along a durable edge returns after the store has committed its promise. A commit is on
// disk: runtime/durable/store has the tests.
func TestASendAwaitsItsCommit(t *testing.T) {
	for name, send := range map[string]func(ctx context.Context, s Sender, id string) error{
		"without an id": func(ctx context.Context, s Sender, _ string) error {
			_, err := Start[any](ctx, s, 0, "a")
			return err
		},
		"with an id": func(ctx context.Context, s Sender, id string) error {
			_, err := StartID[any](ctx, s, 0, "a", id)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := &slowDisk{Store: store.NewMemory()}
				s := carrierOn(t, disk)
				if err := send(t.Context(), s, "first"); err != nil {
					t.Fatal(err)
				}
				arrived, synced, sent := make(chan bool), make(chan error), make(chan error, 1)
				disk.sync = func() error { arrived <- true; return <-synced }
				go func() { sent <- send(t.Context(), s, "second") }()
				<-arrived
				synctest.Wait()
				select {
				case err := <-sent:
					t.Fatalf("the send returned before its sync: %v", err)
				default:
				}
				disk.sync = nil // the engine waits for the sync, and reads this later
				synced <- nil
				if err := <-sent; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestASendToAFullDisk: a send along a durable edge waits until there is space, or until its context ends.
func TestASendToAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &slowDisk{Store: store.NewMemory()}
		s := carrierOn(t, disk)
		began := time.Now()
		const space = time.Hour
		disk.sync = func() error {
			if time.Since(began) < space {
				return store.ErrFull
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := Start[any](ctx, s, 0, "a"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if _, err := Start[any](t.Context(), s, 0, "a"); err != nil || time.Since(began) < space {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
