package localtests_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/generated_test/groups"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/supervise"
)

// journalOfGroups runs the topology while f sends commands. It returns the journal from the first
// failure on, without the end of the topology.
func journalOfGroups(t *testing.T, f func(ctx context.Context, api *groups.ApiSender) error) (list []string, top *groups.Topology, err error) {
	t.Helper()
	groups.Record.List = nil
	top, err = groups.New(groups.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- top.Run(t.Context()) }()
	synctest.Wait()
	begun := len(groups.Record.List)
	if err := f(t.Context(), top.Api()); err != nil {
		t.Error(err)
	}
	synctest.Wait()
	list = slices.Clone(groups.Record.List[begun:])
	top.Api().Close()
	return list, top, <-ended
}

// TestGroupsStrategies checks which instances each strategy restarts, and the order: the last
// member stops first, the first member starts first.
func TestGroupsStrategies(t *testing.T) {
	fail := groups.Command{Instance: 1, Fail: true}
	for name, c := range map[string]struct {
		send func(*groups.ApiSender, context.Context, groups.Command) error
		want []string
	}{
		"one for one":  {(*groups.ApiSender).SendCommandToOneB, []string{"stop one-b/1", "start one-b/1"}},
		"one for all":  {(*groups.ApiSender).SendCommandToAllB, []string{"stop all-b/1", "stop all-c/0", "stop all-b/0", "stop all-a/0", "start all-a/0", "start all-b/0", "start all-b/1", "start all-c/0"}},
		"rest for one": {(*groups.ApiSender).SendCommandToRestB, []string{"stop rest-b/1", "stop rest-c/0", "start rest-b/1", "start rest-c/0"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				list, top, err := journalOfGroups(t, func(ctx context.Context, api *groups.ApiSender) error { return c.send(api, ctx, fail) })
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

// TestGroupsMessagesWait checks that messages wait while an instance restarts, also messages for
// other members of its group.
func TestGroupsMessagesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list, top, err := journalOfGroups(t, func(ctx context.Context, api *groups.ApiSender) error {
			return errors.Join(api.SendCommandToAllB(ctx, groups.Command{Instance: 1, Fail: true}), api.SendCommandToAllB(ctx, groups.Command{Instance: 1, Fail: false}), api.SendCommandToAllC(ctx, groups.Command{}))
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

// TestGroupsIntensity checks that too many restarts of a group end the topology, and that restarts
// of other processors do not count.
func TestGroupsIntensity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, err := journalOfGroups(t, func(ctx context.Context, api *groups.ApiSender) error {
			for i := range 3 {
				if err := errors.Join(api.SendCommandToOneA(ctx, groups.Command{Instance: 0, Fail: true}), api.SendCommandToRestB(ctx, groups.Command{Instance: i % 2, Fail: true})); err != nil {
					return err
				}
				synctest.Wait() // an instance that fails while it is stopped counts as stopped
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		_, _, err = journalOfGroups(t, func(ctx context.Context, api *groups.ApiSender) error {
			for i := range 4 {
				if err := api.SendCommandToRestB(ctx, groups.Command{Instance: i % 2, Fail: true}); err != nil {
					return err
				}
				synctest.Wait()
			}
			return nil
		})
		var e *pool.HandlerError
		if !errors.Is(err, supervise.ErrIntensity) || !errors.Is(err, groups.ErrTold) || !errors.As(err, &e) || e.Processor != "rest-b" {
			t.Error(err)
		}
		_, _, err = journalOfGroups(t, func(ctx context.Context, api *groups.ApiSender) error {
			for range 8 {
				if err := api.SendCommandToAllA(ctx, groups.Command{Instance: 0, Fail: true}); err != nil {
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

// TestGroupsTemporary checks that an instance without restarts ends and the others continue.
func TestGroupsTemporary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list, top, err := journalOfGroups(t, func(ctx context.Context, api *groups.ApiSender) error {
			return errors.Join(api.SendCommandToTemporary(ctx, groups.Command{Instance: 0, Fail: true}), api.SendCommandToTemporary(ctx, groups.Command{}), api.SendCommandToOneC(ctx, groups.Command{}))
		})
		if !errors.Is(err, pool.ErrGaveUp) {
			t.Error(err)
		}
		slices.Sort(list)
		if !slices.Equal(list, []string{"stop temporary/0", "works one-c/0"}) {
			t.Errorf("%q", list)
		}
		if f := top.Snapshot().Faults; f.Restarts != 0 || f.Dropped != 2 || f.GaveUp != 1 || top.Snapshot().Edges[groups.EdgeApiTemporaryCommand].Dropped != 1 {
			t.Errorf("%+v", f)
		}
	})
}
