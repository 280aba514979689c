package raft_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestMain makes the segments of logs small: a test that opens many logs would spend most of its
// time with the space that the engine allocates for each, and with zeros that Open reads. Only a
// long run has the segments of 16 MiB of the product.
func TestMain(m *testing.M) {
	etcdwal.SegmentSizeBytes = speed.ForAll(64<<10, 64<<10, etcdwal.SegmentSizeBytes)
	os.Exit(m.Run())
}

type machine = raft.Machine[lists, appendTo, struct{}]

// open starts a state machine, which is closed when the test ends.
func open(t *testing.T, c raft.Config) *machine {
	t.Helper()
	m, err := tryOpen(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func tryOpen(c raft.Config) (*machine, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Topology, c.Group = "test", "lists"
	m, err := raft.New(c, listsDefinition)
	if err != nil {
		return nil, err
	}
	return m, m.Start(context.Background(), nil)
}

func items(t *testing.T, m *machine) (list []uint64) {
	t.Helper()
	if err := m.Read(t.Context(), func(l *lists) { list = slices.Clone(l.items[0]) }); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestOneDisk closes a state machine and opens it again, in each sync mode.
func TestOneDisk(t *testing.T) {
	for _, sync := range []wal.Sync{wal.Always, wal.Interval, wal.None} {
		t.Run(sync.String(), func(t *testing.T) {
			t.Parallel()
			dir := memdir.Quick(t)
			var want []uint64
			for start := range speed.Pick(t, uint64(3), 6, 6) {
				m := open(t, raft.Config{Dir: dir, Sync: sync, SnapshotEvery: 7})
				if got := items(t, m); !slices.Equal(got, want) {
					t.Fatalf("start %d: %v, want %v", start, got, want)
				}
				for i := range uint64(10) {
					number := (100*start+i)*13*17 + 1
					if _, err := m.Propose(t.Context(), appendTo{0, number, -1}); err != nil {
						t.Fatal(err)
					}
					want = append(want, number)
				}
				if _, err := m.Propose(t.Context(), appendTo{0, 13, -1}); err == nil || err.Error() != errThirteen.Error() {
					t.Errorf("an update that fails: %v", err)
				}
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
				if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); !errors.Is(err, fsm.ErrStopped) {
					t.Errorf("after Close: %v", err)
				}
			}
		})
	}
}

// TestPowerFailuresInEachMode: a power failure loses no acknowledged update with sync: always. In the other modes an
// update is acknowledged without a sync, and a power failure loses at most the updates since the last sync, which is
// that of an interval or of a snapshot.
func TestPowerFailuresInEachMode(t *testing.T) {
	for _, sync := range []wal.Sync{wal.Always, wal.Interval, wal.None} {
		t.Run(sync.String(), func(t *testing.T) {
			disk := newMemoryDisk(1)
			disk.sync = sync
			var log wal.Log
			disk.wrap = func(l wal.Log) wal.Log { log = l; return l }
			c := raft.Config{Disk: disk, Logger: slog.New(slog.DiscardHandler)}
			var kept, all []uint64 // that a power failure must keep, and that were acknowledged
			propose := func(m *machine) {
				t.Helper()
				number := uint64(len(all)+1)*13*17 + 1
				if _, err := m.Propose(t.Context(), appendTo{0, number, -1}); err != nil {
					t.Fatal(err)
				}
				all = append(all, number)
			}
			lost := 0
			for failure := range 20 {
				m := open(t, c)
				all = items(t, m) // which were synced when the log was opened
				kept = slices.Clone(all)
				for range 5 {
					propose(m)
				}
				switch {
				case sync == wal.Always:
					kept = slices.Clone(all)
				case sync == wal.Interval && failure%2 == 0:
					if err := log.Sync(); err != nil { // as each interval does
						t.Fatal(err)
					}
					kept = slices.Clone(all)
				case failure%4 == 1:
					if _, err := m.Snapshot(t.Context()); err != nil {
						t.Fatal(err)
					}
					kept = slices.Clone(all)
				}
				if sync != wal.Always {
					disk.FailSync() // an update waits for no sync
					propose(m)
				}
				disk.Crash()
				_ = m.Close() // the log has ended
				m = open(t, c)
				got := items(t, m)
				if n := len(got); n < len(kept) || n > len(all) || !slices.Equal(got, all[:n]) {
					t.Fatalf("failure %d: %v, acknowledged were %v, and %d of them were synced", failure, got, all, len(kept))
				}
				lost += len(all) - len(got)
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if (lost > 0) != (sync != wal.Always) {
				t.Errorf("%d updates were lost", lost)
			}
		})
	}
}

// TestThreeNodes proposes at three nodes concurrently, and reads at all of them.
func TestThreeNodes(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		ms, configs := v.group()
		var all sync.WaitGroup
		for i, m := range ms {
			for j := range 8 {
				all.Go(func() {
					for k := range 10 {
						number := uint64(1000000*i+10000*j+k)*13*17 + 1
						if _, err := m.Propose(t.Context(), appendTo{0, number, -1}); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		all.Wait()
		want := items(t, ms[0])
		if len(want) != 3*8*10 {
			t.Errorf("%d updates, want %d", len(want), 3*8*10)
		}
		for i, m := range ms[1:] {
			if got := items(t, m); !slices.Equal(got, want) {
				t.Errorf("node %d must have the same list", i+2)
			}
		}
		leader, _ := ms[0].Leader()
		for i, c := range configs {
			if c.Node == leader {
				continue
			}
			if err := ms[0].TransferLeader(t.Context(), c.Node); err != nil && ms[0].Status().Role == "leader" {
				t.Errorf("transfer: %v", err)
			}
			if err := ms[i].Close(); err != nil {
				t.Error(err)
			}
			if _, err := ms[(i+1)%3].Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
				t.Errorf("with two of three: %v", err)
			}
			ms[i] = v.start(c)
			if got := items(t, ms[i]); len(got) != len(want)+1 {
				t.Errorf("the restarted node reads %d updates, want %d", len(got), len(want)+1)
			}
			break
		}
	})
}

// TestSessionsOverNodes: a client that repeats a request at another node gets the same answer.
func TestSessionsOverNodes(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		ms, _ := v.group()
		s, err := ms[0].OpenSession(t.Context(), "client")
		if err != nil {
			t.Fatal(err)
		}
		session := s.Number()
		for sequence := range uint64(5) {
			a, err := ms[0].ProposeAs(t.Context(), session, sequence+1, sequence+1, appendTo{0, sequence*13*17 + 1, -1})
			if err != nil {
				t.Fatal(err)
			}
			b, err := ms[1].ProposeAs(t.Context(), session, sequence+1, sequence+1, appendTo{0, sequence*13*17 + 1, -1})
			if err != nil || a != b {
				t.Errorf("%v and %v, %v", a, b, err)
			}
		}
		if got := items(t, ms[2]); len(got) != 5 {
			t.Errorf("%d updates, want 5", len(got))
		}
		if _, err := ms[2].ProposeAs(t.Context(), session+1, 1, 1, appendTo{0, 1, -1}); !errors.Is(err, fsm.ErrSessionExpired) {
			t.Errorf("no session: %v", err)
		}
	})
}

// TestMembersChange adds a fourth node, promotes it, and removes another one.
func TestMembersChange(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		ms, configs := v.group()
		if _, err := ms[0].Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
			t.Fatal(err)
		}
		c := configs[0]
		c.Node, c.Join = "n4", true
		c.Peers = maps.Clone(c.Peers)
		c.Peers["n4"] = "host-n4:1"
		joined := v.start(c)
		change := func(list ...raft.Change) {
			t.Helper()
			for ; ; pause() {
				leader, _ := ms[1].Leader()
				for i := range configs {
					if configs[i].Node != leader {
						continue
					}
					err := ms[i].ChangeMembers(t.Context(), list...)
					if err == nil {
						return
					}
					// n4 may have the snapshot before the leader knows it.
					early := strings.Contains(err.Error(), "n4 needs a snapshot")
					if !early && !errors.Is(err, fsm.ErrNotLeader) && !errors.Is(err, fsm.ErrUnknown) {
						t.Fatal(err)
					}
				}
			}
		}
		change(raft.Change{Kind: raft.AddLearner, Name: "n4", Address: c.Peers["n4"]})
		if got := items(t, joined); len(got) != 1 {
			t.Errorf("the joined node reads %v", got)
		}
		for ; ; pause() { // the leader may change
			leader, _ := ms[1].Leader()
			at := slices.IndexFunc(configs, func(c raft.Config) bool { return c.Node == leader })
			if at < 0 {
				continue
			}
			err := ms[at].TransferLeader(t.Context(), "n4")
			if errors.Is(err, fsm.ErrNotLeader) {
				continue
			}
			if fmt.Sprint(err) != "raft: n4 is a learner, which has no vote; promote it first" {
				t.Errorf("a transfer to a learner must be refused, got: %v", err)
			}
			break
		}
		change(raft.Change{Kind: raft.Promote, Name: "n4"})
		gone := "n3"
		if leader, _ := ms[1].Leader(); leader == gone {
			gone = "n1"
		}
		change(raft.Change{Kind: raft.Remove, Name: gone})
		for i := range configs {
			if configs[i].Node == gone {
				continue
			}
			err := ms[i].ChangeMembers(t.Context(), raft.Change{Kind: raft.AddVoter, Name: gone, Address: "127.0.0.1:1"})
			if err == nil {
				t.Errorf("the removed member %s must not be added again with its log", gone)
			}
		}
	})
}

// TestConfigsThatAreWrong: the error for an invalid configuration names the field.
func TestConfigsThatAreWrong(t *testing.T) {
	peers := map[string]string{"n1": "127.0.0.1:1", "n2": "127.0.0.1:2"}
	for _, c := range []struct {
		config raft.Config
		want   string
	}{
		{raft.Config{}, "raft: Config.Dir is missing: the folder of the log"},
		{raft.Config{Dir: "x", Peers: peers}, "raft: TOPOGEN_NODE, or Config.Node, must say which of the nodes n1, n2 this is"},
		{raft.Config{Dir: "x", Peers: peers, Node: "n3"}, "raft: Config.Node, or TOPOGEN_NODE, must be one of the nodes n1, n2, got \"n3\""},
		{raft.Config{Dir: "x", Peers: peers, Node: "n1", Sync: wal.None}, "raft: Config.Sync must be wal.Always with Peers: a node that loses an acknowledged entry breaks the guarantees of its group"},
		{raft.Config{Dir: "x", Heartbeat: time.Second}, "raft: the election timeout must be at least two heartbeats of 1s, got 1s"},
		{raft.Config{Dir: "x", Instance: 4, Instances: 4}, "raft: Config.Instance must be one of 4 instances, counted from 0, got 4"},
		{raft.Config{Dir: "x", Instance: 1}, "raft: Config.Instance must be one of 1 instances, counted from 0, got 1"},
		{raft.Config{Dir: "x", Join: true}, "raft: Config.Peers must list this node and some members of the group that it joins"},
	} {
		if _, err := tryOpen(c.config); fmt.Sprint(err) != c.want {
			t.Errorf("%+v:\n%v\nwant %s", c.config, err, c.want)
		}
	}
}

// TestWithoutAMajority: with two of three nodes down, proposals have an unknown outcome, and reads
// are not answered.
func TestWithoutAMajority(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		ms, _ := v.group()
		if _, err := ms[0].Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
			t.Fatal(err)
		}
		for _, m := range ms[1:] {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := ms[0].Propose(ctx, appendTo{0, 2, -1}); !errors.Is(err, fsm.ErrUnknown) || fsm.OutcomeKnown(err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a proposal: %v", err)
		}
		if err := ms[0].Read(ctx, func(*lists) { t.Error("read") }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a read: %v", err)
		}
		var got []uint64
		if err := ms[0].Stale(func(l *lists) { got = slices.Clone(l.items[0]) }); err != nil || len(got) != 1 {
			t.Errorf("a stale read: %v, %v", got, err)
		}
	})
}

// TestAFollowerAnswersWithTheLeader: a follower that does not forward proposals returns the leader.
func TestAFollowerAnswersWithTheLeader(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		peers := named("n1", "n2", "n3")
		ms := map[string]*machine{}
		for name := range peers {
			ms[name] = open(t, v.connect(raft.Config{Node: name, Peers: peers}))
		}
		if err := ms["n1"].Read(t.Context(), func(*lists) {}); err != nil { // waits for a leader
			t.Fatal(err)
		}
		leader, _ := ms["n1"].Leader()
		for name, m := range ms {
			_, err := m.Propose(t.Context(), appendTo{0, 1, -1})
			var other *fsm.NotLeader
			switch {
			case name == leader && err != nil:
				t.Errorf("the leader: %v", err)
			case name != leader && (!errors.As(err, &other) || !fsm.OutcomeKnown(err) || other.Leader != "" && other.Leader != leader):
				t.Errorf("a follower: %v", err)
			}
		}
	})
}

// TestGroupsShareATransport runs two groups on the same three addresses.
func TestGroupsShareATransport(t *testing.T) {
	t.Parallel()
	configs := overGRPC(t, "n1", "n2", "n3")
	for i, groupName := range []string{"left", "right"} {
		for _, c := range configs {
			c.Topology, c.Group, c.Disk, c.Logger = "test", groupName, newMemoryDisk(1), slog.New(slog.DiscardHandler)
			m, err := raft.New(c, listsDefinition)
			if err == nil {
				err = m.Start(t.Context(), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Close() })
			if c.Node == "n2" {
				defer func() {
					if _, err := m.Propose(t.Context(), appendTo{0, uint64(i + 1), -1}); err != nil {
						t.Error(err)
					}
					if err := m.Read(t.Context(), func(l *lists) {
						if !slices.Equal(l.items[0], []uint64{uint64(i + 1)}) {
							t.Errorf("group %s holds %v", groupName, l.items[0])
						}
					}); err != nil {
						t.Error(err)
					}
				}()
			}
		}
	}
	address := configs[0].Peers["n1"]
	r, err := raft.Operate(t.Context(), address, nil, raft.Command{Do: "status"})
	if err != nil || len(r.Groups) != 2 {
		t.Errorf("the status must contain 2 groups, got %+v, %v", r, err)
	}
	if _, err := raft.Operate(t.Context(), address, nil, raft.Command{Do: "status", Group: "middle"}); err == nil || err.Error() != `no group "middle" here, only left, right` {
		t.Errorf("the status of an unknown group: %v", err)
	}
}

// overGRPC returns the configurations of nodes that are connected by gRPC over loopback. Their disks
// are in memory.
func overGRPC(t *testing.T, names ...string) (configs []raft.Config) {
	t.Helper()
	peers := map[string]string{}
	for i, address := range loopback.Addresses(t, len(names)) {
		peers[names[i]] = address
	}
	for i, name := range names {
		configs = append(configs, fastConfig(raft.Config{Node: name, Peers: peers, Disk: newMemoryDisk(uint64(i))}))
	}
	return configs
}

// TestAddressesChange restarts a group with other ports.
func TestAddressesChange(t *testing.T) {
	t.Parallel()
	configs := overGRPC(t, "n1", "n2", "n3")
	var ms []*machine
	for _, c := range configs {
		ms = append(ms, open(t, c))
	}
	if _, err := ms[0].Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
		t.Fatal(err)
	}
	for _, m := range ms {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	addresses := loopback.Addresses(t, 3)
	for i, c := range configs {
		c.Peers = map[string]string{"n1": addresses[0], "n2": addresses[1], "n3": addresses[2]}
		ms[i] = open(t, c)
	}
	if _, err := ms[1].Propose(t.Context(), appendTo{0, 2, -1}); err != nil {
		t.Fatal(err)
	}
	if got := items(t, ms[2]); !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("the state is %v, want 1 and 2", got)
	}
	for i, member := range ms[0].Status().Members {
		if member.Address != addresses[i] {
			t.Errorf("the status must show %s at %s, got %s", member.Name, addresses[i], member.Address)
		}
	}
}
