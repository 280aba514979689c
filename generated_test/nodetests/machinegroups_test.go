package nodetests_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/topogen/topogen/generated_test/machinegroups"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/route"
	"github.com/topogen/topogen/runtime/topo"
)

// names are the keys of a test.
func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("owner", i))
	}
	return list
}

// TestMachineGroupsKeys checks that an update from the controller or from outside reaches the instance
// that its key chooses, and that the answer reaches the proposing instance of the controller.
func TestMachineGroupsKeys(t *testing.T) {
	for seed := range uint64(3) {
		answers, shards := 0, 0
		top, err := machinegroups.New(machinegroups.Processors{
			Clients: func(topo.Instance) (*machinegroups.Clients, error) {
				return &machinegroups.Clients{Names: names(100)}, nil
			},
			Bank: func(in topo.Instance) (*machinegroups.Bank, error) {
				return &machinegroups.Bank{
					Index: in.Index,
					Heard: func(m *machinegroups.LedgerOutcome) {
						if m.Err != nil || m.Value != 1 || route.String(m.Update.Owner.Name, 3) != in.Index {
							t.Errorf("bank %d hears of %+v", in.Index, m)
						}
						answers++
					},
					Shard: func(bank int, m *machinegroups.ShardOutcome) {
						if m.Err != nil || bank != route.String(m.Update.Word, 3) {
							t.Errorf("bank %d hears of %+v", bank, m)
						}
						shards++
					},
				}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		s := top.Stepper(seed)
		if err := s.Run(); err != nil || answers != 100 || shards != 100 {
			t.Fatalf("%d and %d answers, %v", answers, shards, err)
		}
		ctx := t.Context()
		if top.Ledger().Len() != 16 || top.Cache().Len() != 5 {
			t.Error("there are other numbers of instances")
		}
		for _, name := range names(100) {
			i := route.String(name, 16)
			if cents, err := top.Ledger().Propose(ctx, machinegroups.Transfer{Owner: &machinegroups.Owner{Name: name}, Cents: 1}); err != nil || cents != 2 {
				t.Errorf("%s has %d, %v", name, cents, err)
			}
			has := func(ledger *machinegroups.Ledger, want int64) {
				if err := ledger.Read(ctx, func(a *machinegroups.Accounts) {
					if a.Cents[name] != want {
						t.Errorf("%s has %d, want %d", name, a.Cents[name], want)
					}
				}); err != nil {
					t.Error(err)
				}
			}
			has(top.Ledger().For(name), 2)
			has(top.Ledger().At(i), 2)
			has(top.Ledger().At((i+1)%16), 0)
			bank := route.String(name, 3) // the route is local
			if err := top.Shard().At(bank).Read(ctx, func(e *machinegroups.Entries) {
				if e.Words[name] != 1 {
					t.Errorf("shard %d has %d of %s", bank, e.Words[name], name)
				}
			}); err != nil {
				t.Error(err)
			}
		}
		r, err := top.Ledger().ProposeResult(ctx, machinegroups.Transfer{})
		if !errors.Is(err, machinegroups.ErrNobody) || r.Index == 0 || r.Index != top.Ledger().For("").Status().Applied {
			t.Errorf("a key behind nil: %+v, %v", r, err)
		}
		s.Stop()
		if err := s.Run(); err != nil {
			t.Error(err)
		}
	}
}

// TestMachineGroupsOutside checks keys that are methods, and ids in updates, in memory.
func TestMachineGroupsOutside(t *testing.T) {
	top, err := machinegroups.New(machinegroups.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	top.Stepper(1)
	ctx := t.Context()
	for want := range 3 {
		if n, err := top.Cache().Propose(ctx, machinegroups.Put{Word: "word"}); err != nil || n != want+1 {
			t.Errorf("the %d. time it is %d, %v", want+1, n, err)
		}
	}
	if err := top.Cache().For(4).Read(ctx, func(e *machinegroups.Entries) {
		if e.Words["word"] != 3 {
			t.Errorf("it holds %v", e.Words)
		}
	}); err != nil {
		t.Error(err)
	}
	for slot := int32(-1); slot <= 4; slot++ {
		n, err := top.Slot().Propose(ctx, machinegroups.Put{Slot: slot})
		if outside := slot < 0 || slot > 3; errors.Is(err, topo.ErrNoInstance) != outside || !outside && n != 1 {
			t.Errorf("slot %d: %d, %v", slot, n, err)
		}
	}
}

// groupsNode runs one of three nodes on loopback until the test ends.
func groupsNode(t *testing.T, name string, peers map[string]string, dir string) *machinegroups.Topology {
	t.Helper()
	change := func(c *raft.Config) { c.Node, c.Peers, c.Dir = name, peers, dir }
	top, err := machinegroups.New(machinegroups.Processors{
		Ledger: func(in topo.Instance) (*machinegroups.Ledger, error) {
			return machinegroups.NewLedger(in.Index, change)
		},
		Shard: func(in topo.Instance) (*machinegroups.Shard, error) {
			return machinegroups.NewShard(in.Index, func(c *raft.Config) { c.Dir = dir + "/shard-" + name })
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := top.Run(ctx); err != nil {
			t.Errorf("%s ends with %v", name, err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return top
}

// TestMachineGroupsThreeNodes checks sixteen groups that share one listener on each of three nodes. A key
// reaches the same group from each node, and each node leads its part of the groups.
func TestMachineGroupsThreeNodes(t *testing.T) {
	speed.Landing(t) // TestMachineGroupsKeys has groups in memory; runtime/raft has preferred leaders in virtual time
	peers, dir := newPeers(t), t.TempDir()
	nodes := map[string]*machinegroups.Topology{}
	for name := range peers {
		nodes[name] = groupsNode(t, name, peers, dir)
	}
	led := func() map[string]int {
		n := map[string]int{}
		for name, top := range nodes {
			for i := range top.Ledger().Len() {
				if top.Ledger().At(i).Status().Role == "leader" {
					n[name]++
				}
			}
		}
		return n
	}
	eventually(t, func() bool { return maps.Equal(led(), map[string]int{"n1": 6, "n2": 5, "n3": 5}) })

	ctx := t.Context()
	for _, name := range names(50) {
		want := int64(0)
		for _, top := range nodes {
			want++
			if cents, err := top.Ledger().Propose(ctx, machinegroups.Transfer{Owner: &machinegroups.Owner{Name: name}, Cents: 1}); err != nil || cents != want {
				t.Errorf("%s has %d, want %d, %v", name, cents, want, err)
			}
		}
		for _, top := range nodes {
			if err := top.Ledger().For(name).Read(ctx, func(a *machinegroups.Accounts) {
				if a.Cents[name] != want {
					t.Errorf("%s has %d, want %d", name, a.Cents[name], want)
				}
			}); err != nil {
				t.Error(err)
			}
		}
	}
	for name, top := range nodes { // these state machines are not replicated
		for _, word := range names(20) {
			if n, err := top.Cache().Propose(ctx, machinegroups.Put{Word: word}); err != nil || n != 1 {
				t.Errorf("in the memory of %s there are %d of %s, %v", name, n, word, err)
			}
			if n, err := top.Shard().At(route.String(word, 3)).Propose(ctx, machinegroups.Put{Word: word}); err != nil || n != 1 {
				t.Errorf("on the disk of %s there are %d of %s, %v", name, n, word, err)
			}
		}
	}
	r, err := raft.Operate(ctx, peers["n2"], nil, raft.Command{Do: "status"})
	if err != nil || len(r.Groups) != 16 || r.Groups[2].Group != "ledger/2-of-16" {
		t.Errorf("an operator sees %+v, %v", r, err)
	}
}
