package raft_test

import (
	"archive/tar"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// acks proposes an update, and reports whether it is acknowledged within a minute.
func acks(t *testing.T, m *machine) bool {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := m.Propose(ctx, appendTo{0, 1, -1})
	return err == nil
}

// TestAForgottenFlag: n6 is started without Join. Its peers are two members of an existing group and
// itself. It acknowledges nothing before it is added to the group.
func TestAForgottenFlag(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		first := named("n4", "n5", "n7")
		var ms []*machine
		for name := range first {
			ms = append(ms, v.start(raft.Config{Node: name, Peers: first}))
		}
		leader := leaderOf(v.t, ms)
		if !acks(t, leader) {
			t.Fatal("the group must acknowledge an update")
		}
		n6 := v.start(raft.Config{Node: "n6", Peers: named("n4", "n5", "n6")})
		if acks(t, n6) {
			t.Error("n6 must not acknowledge an update before it is added")
		}
		if s := n6.Status(); s.Role != "founding" || s.GroupID != 0 {
			t.Errorf("n6 is %s in group %x", s.Role, s.GroupID)
		}
		v.logs["n6"].hasLogged(t, "n4 belongs to an existing group", "this node is not a member", "topoctl raft add n6 host-n6:1 --addr host-n4:1")
		if err := leader.ChangeMembers(t.Context(), raft.Change{Kind: raft.AddLearner, Name: "n6", Address: "host-n6:1"}); err != nil {
			t.Fatal(err)
		}
		if got := items(t, n6); len(got) != 1 { // the update at n6 must not have been proposed
			t.Errorf("n6 reads %v", got)
		}
	})
}

// TestDifferentFirstMembers: no group is founded while the nodes are configured with different first
// members, and each node logs the differences.
func TestDifferentFirstMembers(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		two, three := named("n1", "n2"), named("n1", "n2", "n3")
		ms := map[string]*machine{}
		for name, peers := range map[string]map[string]string{"n1": two, "n2": three, "n3": three} {
			ms[name] = v.start(raft.Config{Node: name, Peers: peers})
		}
		time.Sleep(10 * time.Second)
		for name, m := range ms {
			if acks(t, m) || m.Status().GroupID != 0 {
				t.Errorf("%s must not acknowledge an update", name)
			}
		}
		v.logs["n1"].hasLogged(t, "this node is configured with the first members n1, n2, but n2 with n1, n2, n3", "Give all nodes the same peers")
		v.logs["n3"].hasLogged(t, "this node is configured with the first members n1, n2, n3, but n1 with n1, n2")
	})
}

// TestWaitingForPeers: a node that waits for peers to found a group logs their names after some
// seconds, and then every minute.
func TestWaitingForPeers(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		three := named("n1", "n2", "n3")
		n1 := v.start(raft.Config{Node: "n1", Peers: three})
		v.start(raft.Config{Node: "n3", Peers: three})
		time.Sleep(3*time.Minute + time.Second)
		if n := strings.Count(v.logs["n1"].String(), "waiting for n2 (host-n2:1) before the group can be founded"); n != 3 {
			t.Errorf("logged %d times, want 3:\n%s", n, v.logs["n1"])
		}
		if s := n1.Status(); s.Role != "founding" {
			t.Errorf("n1 is %s", s.Role)
		}
		v.start(raft.Config{Node: "n2", Peers: three})
		if !acks(t, n1) {
			t.Error("the group must be founded once all nodes run")
		}
	})
}

// TestAllAreToldToJoin: if all nodes are started with Join, no group is founded, and they log why.
func TestAllAreToldToJoin(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		two := named("n1", "n2")
		n1 := v.start(raft.Config{Node: "n1", Peers: two, Join: true})
		v.start(raft.Config{Node: "n2", Peers: two, Join: true})
		if acks(t, n1) {
			t.Error("no group may be founded")
		}
		v.logs["n1"].hasLogged(t, "each of n1, n2 is set to join an existing group (TOPOGEN_RAFT_JOIN)")
	})
}

// TestTwoGroupsMeet: messages between two groups are refused, counted, and logged on both sides with
// both identities.
func TestTwoGroupsMeet(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		two := named("n1", "n2")
		var ms []*machine
		for name := range two {
			ms = append(ms, v.start(raft.Config{Node: name, Peers: two}))
		}
		leader := leaderOf(v.t, ms)
		if !acks(t, leader) {
			t.Fatal("the group must acknowledge an update")
		}
		name, other := leader.Status().Node, "n1"
		if name == other {
			other = "n2"
		}
		for _, o := range []string{name, other} {
			v.ends[o]()
		}
		// The other node founds a new group with the same name while no other node runs.
		v.disks[other] = newMemoryDisk(2)
		if !acks(t, v.start(raft.Config{Node: other, Peers: named(other)})) {
			t.Fatal("the other group must acknowledge an update")
		}
		v.ends[other]()
		leader, back := v.start(raft.Config{Node: name, Peers: two}), v.start(raft.Config{Node: other, Peers: two})
		time.Sleep(5 * time.Minute)
		ids := []string{fmt.Sprintf("%016x", leader.Status().GroupID), fmt.Sprintf("%016x", back.Status().GroupID)}
		if back.Status().Foreign == 0 || ids[0] == ids[1] {
			t.Errorf("refused %d messages; the groups are %v", back.Status().Foreign, ids)
		}
		v.logs[other].hasLogged(t, "refused a message", "its_group="+ids[0], "group="+ids[1], "Stop the nodes of the wrong group")
		v.logs[name].hasLogged(t, "a peer refuses this node's messages", "its_group="+ids[1], "group="+ids[0])
		if n := strings.Count(v.logs[other].String(), "refused a message"); n > 6 {
			t.Errorf("logged %d times in five minutes", n)
		}
	})
}

// TestAWipedDisk: a member whose folder was emptied stops with an error that says what to do. After
// these steps it is a member again.
func TestAWipedDisk(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		ms, configs := v.groupIn(memdir.Quick(t))
		for i := range uint64(5) {
			if _, err := ms[0].Propose(t.Context(), appendTo{0, 1 + i, -1}); err != nil {
				t.Fatal(err)
			}
		}
		wiped := 1
		if leader, _ := ms[0].Leader(); leader == configs[wiped].Node {
			wiped = 2
		}
		name, address := configs[wiped].Node, configs[wiped].Peers[configs[wiped].Node]
		if err := ms[wiped].Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(configs[wiped].Dir, name)); err != nil {
			t.Fatal(err)
		}
		m := v.start(configs[wiped])
		if _, err := m.Propose(t.Context(), appendTo{0, 7, -1}); !errors.Is(err, raft.ErrLogLost) {
			t.Errorf("an update at this node: %v", err)
		}
		err := m.Close()
		want := "Remove the member (topoctl raft remove " + name + "), empty the folder of this node, start it, and add it (topoctl raft add " + name + " " + address + ")"
		if !errors.Is(err, raft.ErrLogLost) || !strings.Contains(err.Error(), want) {
			t.Errorf("the node must stop with ErrLogLost, got %v", err)
		}
		change(t, ms[0], configs, ms, raft.Change{Kind: raft.Remove, Name: name})
		back := v.start(configs[wiped])
		ms[wiped] = back
		change(t, ms[0], configs, ms, raft.Change{Kind: raft.AddVoter, Name: name, Address: address})
		if got := items(t, back); !slices.Equal(got, []uint64{1, 2, 3, 4, 5}) {
			t.Errorf("the node reads %v", got)
		}
	})
}

// change makes changes at the leader.
func change(t *testing.T, any *machine, configs []raft.Config, ms []*machine, list ...raft.Change) {
	t.Helper()
	for ; ; pause() {
		leader, _ := any.Leader()
		for i := range configs {
			if configs[i].Node != leader {
				continue
			}
			err := ms[i].ChangeMembers(t.Context(), list...)
			if err == nil {
				return
			}
			if s := ms[i].Status(); s.Role == "leader" {
				t.Fatal(err)
			}
		}
	}
}

// TestAJoinerThatKnowsAFollower: a joining node that is configured with one follower gets the whole
// log, because it receives the address of the leader.
func TestAJoinerThatKnowsAFollower(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		ms, configs := v.group()
		if _, err := ms[0].Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
			t.Fatal(err)
		}
		leader, _ := ms[0].Leader()
		at := slices.IndexFunc(configs, func(c raft.Config) bool { return c.Node != leader })
		c := configs[at]
		c.Peers = map[string]string{c.Node: c.Peers[c.Node], "n9": "host-n9:1"}
		c.Node, c.Join = "n9", true
		joined := v.start(c)
		change(t, ms[0], configs, ms, raft.Change{Kind: raft.AddVoter, Name: "n9", Address: c.Peers["n9"]})
		if got := items(t, joined); !slices.Equal(got, []uint64{1}) {
			t.Errorf("the node reads %v", got)
		}
	})
}

// TestALogThatIsGone: a node with a record but without a log does not start.
func TestALogThatIsGone(t *testing.T) {
	dir := memdir.Quick(t)
	c := raft.Config{Dir: dir}
	m := open(t, c)
	if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"wal", "snap"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tryOpen(c); !errors.Is(err, raft.ErrLogLost) || !strings.Contains(err.Error(), "its log is gone") {
		t.Errorf("the node must not start, got %v", err)
	}
}

// TestOldRecords: a record from before the node was a member, next to a log with entries, is
// refused, and the entries stay.
func TestOldRecords(t *testing.T) {
	dir := memdir.Quick(t)
	c := raft.Config{Dir: dir}
	m := open(t, c)
	if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	disk, err := raft.OpenFolder(dir, wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := disk.Record()
	if err != nil || r.Name != "alone" || r.ID == 0 || r.GroupID == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	old := r
	old.GroupID, old.Since = 0, 0
	if err := errors.Join(disk.SetRecord(old), disk.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := tryOpen(c); err == nil || !strings.Contains(err.Error(), "the record is older than the log") {
		t.Errorf("the node must not start, got %v", err)
	}
	if disk, err = raft.OpenFolder(dir, wal.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(disk.SetRecord(r), disk.Close()); err != nil {
		t.Fatal(err)
	}
	if got := items(t, open(t, c)); !slices.Equal(got, []uint64{1}) {
		t.Errorf("the node reads %v", got)
	}
}

// TestOldLogs opens logs of a version in which members had no random ids and groups had no
// identity. Their group continues and accepts new members.
func TestOldLogs(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		dir := memdir.Quick(t)
		unpackOldLogs(t, dir)
		for start := range 2 {
			alone := open(t, raft.Config{Dir: filepath.Join(dir, "alone")})
			want := []uint64{1, 2, 3, 4, 5, 6, 6}[:5+start]
			if got := items(t, alone); !slices.Equal(got, want) {
				t.Errorf("alone, start %d: %v, want %v", start, got, want)
			}
			if _, err := alone.Propose(t.Context(), appendTo{0, 6, -1}); err != nil {
				t.Fatal(err)
			}
			if _, err := alone.Snapshot(t.Context()); err != nil {
				t.Error(err)
			}
			if err := alone.Close(); err != nil {
				t.Fatal(err)
			}
		}

		ms, configs := v.groupIn(filepath.Join(dir, "group"))
		if got := items(t, ms[0]); !slices.Equal(got, []uint64{1, 2, 3, 4, 5, 7}) {
			t.Errorf("the group reads %v", got)
		}
		group := ms[0].Status().GroupID
		for i, m := range ms {
			s := m.Status()
			if s.ID != raft.MemberID(s.Node) || s.GroupID != group || group == 0 || len(s.Members) != 3 {
				t.Errorf("node %d: %+v", i, s)
			}
		}
		c := configs[0]
		c.Node, c.Join, c.Peers = "n4", true, maps.Clone(c.Peers) // the old group has removed a member with this name
		c.Peers["n4"] = "host-n4:1"
		joined := v.start(c)
		change(t, ms[0], configs, ms, raft.Change{Kind: raft.AddVoter, Name: "n4", Address: "host-n4:1"})
		if got := items(t, joined); len(got) != 6 {
			t.Errorf("the joined node reads %v", got)
		}
		if s := joined.Status(); s.ID == raft.MemberID("n4") || s.GroupID != group {
			t.Errorf("the joined node: %+v", s)
		}
	})
}

// oldSegmentBytes is the size of the segments of old logs.
const oldSegmentBytes = 16 << 20

// unpackOldLogs writes logs of a version in which members had no random ids to dir. The archive
// has their segments without the zeros at the end.
func unpackOldLogs(t *testing.T, dir string) {
	t.Helper()
	archive, err := os.Open(filepath.Join("testdata", "old-logs.tar.bz2"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	for tr := tar.NewReader(bzip2.NewReader(archive)); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			err = unpack(tr, path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unpack(r io.Reader, path string) error {
	b, err := io.ReadAll(r)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if filepath.Ext(path) == ".wal" {
		err = errors.Join(err, os.Truncate(path, oldSegmentBytes))
	}
	return err
}
