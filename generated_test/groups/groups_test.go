package groups

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/supervise"
)

// journalOf runs the topology while f sends commands. It returns the journal from the first
// failure on, without the end of the topology.
func journalOf(t *testing.T, f func(ctx context.Context, api *ApiSender) error) (list []string, top *Topology, err error) {
	t.Helper()
	journal.list = nil
	top, err = New(Processors{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- top.Run(t.Context()) }()
	synctest.Wait()
	begun := len(journal.list)
	if err := f(t.Context(), top.Api()); err != nil {
		t.Error(err)
	}
	synctest.Wait()
	list = slices.Clone(journal.list[begun:])
	top.Api().Close()
	return list, top, <-ended
}

// TestStrategies checks which instances each strategy restarts, and the order: the last
// member stops first, the first member starts first.
func TestStrategies(t *testing.T) {
	fail := Command{1, true}
	for name, c := range map[string]struct {
		send func(*ApiSender, context.Context, Command) error
		want []string
	}{
		"one for one":  {(*ApiSender).SendCommandToOneB, []string{"stop one-b/1", "start one-b/1"}},
		"one for all":  {(*ApiSender).SendCommandToAllB, []string{"stop all-b/1", "stop all-c/0", "stop all-b/0", "stop all-a/0", "start all-a/0", "start all-b/0", "start all-b/1", "start all-c/0"}},
		"rest for one": {(*ApiSender).SendCommandToRestB, []string{"stop rest-b/1", "stop rest-c/0", "start rest-b/1", "start rest-c/0"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				list, top, err := journalOf(t, func(ctx context.Context, api *ApiSender) error { return c.send(api, ctx, fail) })
				if err != nil {
					t.Fatal(err)
				}
				// The failed instance is closed at any time in between.
				if i := slices.Index(list, c.want[0]); i >= 0 {
					list = slices.Insert(slices.Delete(list, i, i+1), 0, c.want[0])
				}
				if !slices.Equal(list, c.want) {
					t.Errorf("%q\nwant %q", list, c.want)
				}
				starts := slices.DeleteFunc(slices.Clone(c.want), func(s string) bool { return s[:5] != "start" })
				if n := top.Snapshot().Faults.Restarts; n != uint64(len(starts)) {
					t.Errorf("%d restarts, want %d", n, len(starts))
				}
			})
		})
	}
}

// TestMessagesWait checks that messages wait while an instance restarts, also messages for
// other members of its group.
func TestMessagesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list, top, err := journalOf(t, func(ctx context.Context, api *ApiSender) error {
			return errors.Join(api.SendCommandToAllB(ctx, Command{1, true}), api.SendCommandToAllB(ctx, Command{1, false}), api.SendCommandToAllC(ctx, Command{}))
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, who := range []string{"works all-b/1", "works all-c/0"} {
			if !slices.Contains(list, who) {
				t.Errorf("%q", list)
			}
		}
		if f := top.Snapshot().Faults; f.Restarts != 4 || f.Dropped != 1 {
			t.Errorf("%+v", f)
		}
	})
}

// TestIntensity checks that too many restarts of a group end the topology, and that restarts
// of other processors do not count.
func TestIntensity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, err := journalOf(t, func(ctx context.Context, api *ApiSender) error {
			for i := range 3 {
				if err := errors.Join(api.SendCommandToOneA(ctx, Command{0, true}), api.SendCommandToRestB(ctx, Command{i % 2, true})); err != nil {
					return err
				}
				synctest.Wait() // an instance that fails while it is stopped counts as stopped
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		_, _, err = journalOf(t, func(ctx context.Context, api *ApiSender) error {
			for i := range 4 {
				if err := api.SendCommandToRestB(ctx, Command{i % 2, true}); err != nil {
					return err
				}
				synctest.Wait()
			}
			return nil
		})
		var e *pool.HandlerError
		if !errors.Is(err, supervise.ErrIntensity) || !errors.Is(err, errTold) || !errors.As(err, &e) || e.Processor != "rest-b" {
			t.Error(err)
		}
		_, _, err = journalOf(t, func(ctx context.Context, api *ApiSender) error {
			for range 8 {
				if err := api.SendCommandToAllA(ctx, Command{0, true}); err != nil {
					return err
				}
				<-time.After(30 * time.Second)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestTemporary checks that an instance without restarts ends and the others continue.
func TestTemporary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list, top, err := journalOf(t, func(ctx context.Context, api *ApiSender) error {
			return errors.Join(api.SendCommandToTemporary(ctx, Command{0, true}), api.SendCommandToTemporary(ctx, Command{}), api.SendCommandToOneC(ctx, Command{}))
		})
		if !errors.Is(err, pool.ErrGaveUp) {
			t.Error(err)
		}
		slices.Sort(list)
		if !slices.Equal(list, []string{"stop temporary/0", "works one-c/0"}) {
			t.Errorf("%q", list)
		}
		if f := top.Snapshot().Faults; f.Restarts != 0 || f.Dropped != 2 || f.GaveUp != 1 || top.Snapshot().Edges[EdgeApiTemporaryCommand].Dropped != 1 {
			t.Errorf("%+v", f)
		}
	})
}
