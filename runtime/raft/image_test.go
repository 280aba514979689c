package raft_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// found founds a group from the log in a folder.
func found(t *testing.T, from, to, node, address string) {
	t.Helper()
	i, err := raft.OpenImage(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i.Close() }()
	if err := i.Found(to, node, address); err != nil {
		t.Fatal(err)
	}
}

// fastConfig sets the short timeouts of tests. A node without others needs none.
func fastConfig(c raft.Config) raft.Config {
	c.Heartbeat, c.ElectionTimeout, c.Forward = 10*time.Millisecond, 100*time.Millisecond, true
	if len(c.Peers) == 1 {
		c.Heartbeat, c.ElectionTimeout = time.Millisecond, 2*time.Millisecond
	}
	return c
}

// TestOneDiskToThreeAndBack: the log of a state machine on one disk becomes the log of the first of
// three nodes. Later the log of one of these nodes becomes a log on one disk again.
func TestOneDiskToThreeAndBack(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		dir := memdir.Quick(t)
		path := func(name string) string { return filepath.Join(dir, name) }
		alone := open(t, raft.Config{Dir: path("alone"), SnapshotEvery: 3})
		var want []uint64
		add := func(m *machine) {
			t.Helper()
			want = append(want, uint64(len(want)+1))
			if _, err := m.Propose(t.Context(), appendTo{0, want[len(want)-1], -1}); err != nil {
				t.Fatal(err)
			}
		}
		for range 7 {
			add(alone)
		}
		before := alone.Status()
		if err := alone.Close(); err != nil {
			t.Fatal(err)
		}
		peers := named("n1", "n2", "n3")
		found(t, path("alone"), path("three"), "n1", peers["n1"])

		var configs []raft.Config
		var ms []*machine
		for i, name := range []string{"n1", "n2", "n3"} {
			configs = append(configs, raft.Config{Node: name, Peers: peers, Dir: path("three")})
			ms = append(ms, v.start(configs[i]))
		}
		if got := items(t, ms[0]); !slices.Equal(got, want) {
			t.Errorf("the first of three reads %v, want %v", got, want)
		}
		if s := ms[0].Status(); s.ID == before.ID || s.GroupID == before.GroupID || len(s.Members) != 1 {
			t.Errorf("the first of three: %+v; before %+v", s, before)
		}
		for i := 1; i < 3; i++ {
			change(t, ms[0], configs, ms, raft.Change{Kind: raft.AddVoter, Name: configs[i].Node, Address: peers[configs[i].Node]})
		}
		add(ms[1])
		if got := items(t, ms[2]); !slices.Equal(got, want) {
			t.Errorf("the last of three reads %v, want %v", got, want)
		}
		for _, m := range ms {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		found(t, path("three/n3"), path("back"), "alone", "")
		back := open(t, raft.Config{Dir: path("back")})
		if got := items(t, back); !slices.Equal(got, want) {
			t.Errorf("on one disk again the state is %v, want %v", got, want)
		}
		add(back)
	})
}

// TestAnInstanceIsMoved: the log of one of several instances is written to the folder with its
// number, where the instance opens it.
func TestAnInstanceIsMoved(t *testing.T) {
	t.Parallel()
	dir := memdir.Quick(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	alone := raft.Config{Dir: path("alone"), Instance: 3, Instances: 16}
	m := open(t, alone)
	if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	address := loopback.Addresses(t, 1)[0]
	found(t, path("alone/3"), path("several"), "n1", address)
	several := fastConfig(raft.Config{Dir: path("several"), Instance: 3, Instances: 16, Node: "n1", Peers: map[string]string{"n1": address}})
	m = open(t, several)
	if got := items(t, m); !slices.Equal(got, []uint64{1}) {
		t.Errorf("among several nodes the state is %v", got)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	i, err := raft.OpenImage(path("several/n1/3"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.FoundInPlace("n3", address); !errors.Is(err, raft.ErrFolder) {
		t.Errorf("another node: %v", err)
	}
	if kept, err := i.FoundInPlace("n1", address); err != nil || kept != path("several/n1/3.old") {
		t.Errorf("in place: %q, %v", kept, err)
	}
	m = open(t, several)
	if got := items(t, m); !slices.Equal(got, []uint64{1}) {
		t.Errorf("after a recovery in place the state is %v", got)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	found(t, path("several/n1/3"), path("back"), "alone", "")
	alone.Dir = path("back")
	if got := items(t, open(t, alone)); !slices.Equal(got, []uint64{1}) {
		t.Errorf("on one disk again the state is %v", got)
	}
}

// TestOneOfThreeIsLeft: the log of the only remaining node becomes a new group with all of its
// entries, including entries that may not have been committed. A change of members among them
// has no effect.
func TestOneOfThreeIsLeft(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		ms, configs := v.groupIn(memdir.Quick(t))
		leader, followers := roles(t, ms)
		if _, err := leader.Propose(t.Context(), appendTo{0, 2, -1}); err != nil { // the node has opened its session
			t.Fatal(err)
		}
		for _, m := range followers {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		last := leader.Status().Last
		proposed, changed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := leader.Propose(t.Context(), appendTo{0, 3, -1})
			proposed <- err
		}()
		for leader.Status().Last == last { // until the update is in the log of this node, and only there
			pause()
		}
		last = leader.Status().Last
		gone := followers[0].Status().Node
		go func() {
			changed <- leader.ChangeMembers(t.Context(), raft.Change{Kind: raft.Remove, Name: gone, Force: true})
		}()
		for leader.Status().Last == last && len(changed) == 0 { // or until it has lost the leadership
			pause()
		}
		dir, name := configs[0].Dir, leader.Status().Node
		if err := leader.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-proposed; err == nil {
			t.Error("an update must not be acknowledged without a majority")
		}
		to := memdir.Quick(t)
		found(t, filepath.Join(dir, name), to, "m1", "127.0.0.1:1")
		m := v.start(raft.Config{Node: "m1", Peers: named("m1"), Dir: to})
		if got := items(t, m); !slices.Equal(got, []uint64{1, 2, 3}) {
			t.Errorf("the state is %v", got)
		}
		if s := m.Status(); len(s.Members) != 1 || s.Members[0].Name != "m1" {
			t.Errorf("the only member must be m1, got %v", s.Members)
		}
	})
}

// TestOthersOfAnImage: Others returns the members as they are after the last entry of the log.
func TestOthersOfAnImage(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		ms, configs := v.groupIn(memdir.Quick(t))
		leader, followers := roles(t, ms)
		self, gone, left := leader.Status().Node, followers[0].Status().Node, followers[1].Status().Node
		for _, c := range []raft.Change{
			{Kind: raft.AddLearner, Name: "n4", ID: 4},
			{Kind: raft.Remove, Name: gone},
			{Kind: raft.Rename, Name: self, To: "n5"},
		} {
			if err := leader.ChangeMembers(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if err := leader.Close(); err != nil {
			t.Fatal(err)
		}
		i, err := raft.OpenImage(filepath.Join(configs[0].Dir, self))
		if err != nil {
			t.Fatal(err)
		}
		others, err := i.Others()
		if err != nil || len(others) != 2 || others[0].Name != left || others[1].Name != "n4" {
			t.Errorf("the others must be %s and n4, got %v, %v", left, others, err)
		}
	})
}

// TestFoundingOverALog: Found refuses a folder with a log.
func TestFoundingOverALog(t *testing.T) {
	t.Parallel()
	dir := memdir.Quick(t)
	m := open(t, raft.Config{Dir: filepath.Join(dir, "log")})
	if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil { // after its answer the node writes nothing more
		t.Fatal(err)
	}
	if _, err := raft.OpenImage(filepath.Join(dir, "log")); !errors.Is(err, wal.ErrInUse) {
		t.Errorf("the log of a running node must be in use, got: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	i, err := raft.OpenImage(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ to, address string }{{"log", ""}, {"log", "127.0.0.1:1"}} {
		if err := i.Found(filepath.Join(dir, c.to), "n1", c.address); err == nil {
			t.Errorf("%+v: the log must not be replaced", c)
		}
	}
	if err := i.Found(filepath.Join(dir, "n"), "", ""); err == nil {
		t.Error("a node without a name must be refused")
	}
	m = open(t, raft.Config{Dir: filepath.Join(dir, "log")})
	items(t, m)
}

// TestFoundingIsInterrupted: nodes and later calls of Found refuse a folder that an interrupted Found
// has left.
func TestFoundingIsInterrupted(t *testing.T) {
	t.Parallel()
	dir := memdir.Quick(t)
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	m := open(t, raft.Config{Dir: from})
	items(t, m)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	found(t, from, to, "alone", "")
	items(t, open(t, raft.Config{Dir: to})) // a complete folder opens
	broken := filepath.Join(dir, "broken")
	found(t, from, broken, "alone", "")
	if err := os.WriteFile(filepath.Join(broken, "unfinished"), nil, 0o600); err != nil { // as before the last step of Found
		t.Fatal(err)
	}
	want := "was interrupted while it wrote " + broken + ": remove this folder, and begin again"
	if _, err := tryOpen(raft.Config{Dir: broken}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a node: %v", err)
	}
	if _, err := raft.OpenImage(broken); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an image of an incomplete folder: %v", err)
	}
	i, err := raft.OpenImage(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Found(broken, "alone", ""); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Found again: %v", err)
	}
}

// TestFoundingInPlace: FoundInPlace replaces the folder of a node and keeps the old one next to it.
// It refuses to do so while the node runs, or if the node has run since the image was opened.
func TestFoundingInPlace(t *testing.T) {
	t.Parallel()
	dir, address := memdir.Quick(t), loopback.Addresses(t, 1)[0]
	c := fastConfig(raft.Config{Node: "n1", Peers: map[string]string{"n1": address}, Dir: dir})
	n1 := filepath.Join(dir, "n1")
	run := func(use func(*machine)) {
		t.Helper()
		m := open(t, c)
		items(t, m) // waits until the node leads
		use(m)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	image := func() *raft.Image {
		t.Helper()
		i, err := raft.OpenImage(n1)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	add := func(m *machine) {
		if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
			t.Fatal(err)
		}
	}
	var before, after uint64
	run(func(m *machine) { before = m.Status().GroupID })
	old := image()
	run(func(m *machine) {
		if _, err := old.FoundInPlace("n1", address); !errors.Is(err, wal.ErrInUse) {
			t.Errorf("while the node runs: %v", err)
		}
		add(m)
	})
	if _, err := old.FoundInPlace("n1", address); !errors.Is(err, raft.ErrFolder) {
		t.Errorf("after the node has run: %v", err)
	}
	for _, c := range []struct{ node, address string }{{"n2", address}, {"n1", ""}} {
		if _, err := image().FoundInPlace(c.node, c.address); !errors.Is(err, raft.ErrFolder) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	run(func(m *machine) {
		if got := items(t, m); !slices.Equal(got, []uint64{1}) || m.Status().GroupID != before {
			t.Errorf("refused attempts must not change the log, got %v", got)
		}
	})
	kept, err := image().FoundInPlace("n1", address)
	if err != nil || kept != n1+raft.KeptSuffix {
		t.Fatal(kept, err)
	}
	run(func(m *machine) {
		after = m.Status().GroupID
		if got := items(t, m); !slices.Equal(got, []uint64{1}) || after == before {
			t.Errorf("the state is %v, and the group %x must differ from %x", got, after, before)
		}
	})
	if _, err := image().FoundInPlace("n1", address); !errors.Is(err, raft.ErrFolder) {
		t.Errorf("where an old folder is kept: %v", err)
	}
	next := n1 + raft.RecoveringSuffix
	if err := os.Rename(n1, next); err != nil { // as after an interruption between two renames
		t.Fatal(err)
	}
	if _, err := tryOpen(c); err == nil || !strings.Contains(err.Error(), "rename this folder to "+n1) {
		t.Errorf("after recover was interrupted a node opens with %v", err)
	}
	if err := os.Rename(next, n1); err != nil {
		t.Fatal(err)
	}
	run(func(m *machine) {
		if m.Status().GroupID != after {
			t.Errorf("after the rename the group is %x, want %x", m.Status().GroupID, after)
		}
	})
	if i, err := raft.OpenImage(kept); err != nil || i.GroupID != before {
		t.Errorf("the kept folder: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

// backup writes a backup of a state machine.
func backup(t *testing.T, m *machine) (path string) {
	t.Helper()
	path = filepath.Join(memdir.Quick(t), "backup")
	file, err := os.Create(path)
	if err == nil {
		err = errors.Join(m.Backup(t.Context(), file), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestABackup: a backup of a running group, or of a folder, is enough to found a new group.
func TestABackup(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		ms, configs := v.groupIn(memdir.Quick(t))
		_, followers := roles(t, ms)
		for i := range uint64(4) {
			if _, err := ms[0].Propose(t.Context(), appendTo{0, 2 + i, -1}); err != nil {
				t.Fatal(err)
			}
		}
		want := []uint64{1, 2, 3, 4, 5}
		paths := []string{backup(t, followers[0])} // a backup of any node includes all acknowledged updates
		items(t, ms[2])                            // its folder has all updates, too, and not only the folders of a majority
		for _, m := range ms {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		folder, err := raft.OpenImage(filepath.Join(configs[2].Dir, "n3"))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, filepath.Join(memdir.Quick(t), "backup"))
		var b bytes.Buffer
		if n, err := folder.WriteTo(&b); err != nil || n != int64(b.Len()) {
			t.Fatal(n, err)
		}
		if err := os.WriteFile(paths[1], b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			i, err := raft.OpenBackup(path)
			if err != nil {
				t.Fatal(err)
			}
			if i.Topology != "test" || i.Group != "lists" || i.GroupID == 0 || len(i.Members) != 3 || i.Last < i.Index {
				t.Errorf("%+v", i)
			}
			to := memdir.Quick(t)
			if err := errors.Join(i.Found(to, "n1", "127.0.0.1:1"), i.Close()); err != nil {
				t.Fatal(err)
			}
			m := v.start(raft.Config{Node: "n1", Peers: named("n1"), Dir: to})
			if got := items(t, m); !slices.Equal(got, want) {
				t.Errorf("the state is %v, want %v", got, want)
			}
		}
	})
}

// TestADamagedBackup: a backup with a flipped bit, or truncated at any byte, is refused.
func TestADamagedBackup(t *testing.T) {
	t.Parallel()
	m := open(t, raft.Config{Dir: memdir.Quick(t)})
	for i := range uint64(3) {
		if _, err := m.Propose(t.Context(), appendTo{0, 1 + i, -1}); err != nil {
			t.Fatal(err)
		}
	}
	path := backup(t, m)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if i, err := raft.OpenBackup(path); !errors.Is(err, raft.ErrImage) {
			_ = i.Close()
			t.Fatalf("%s: %v", what, err)
		}
	}
	for i := 0; i < len(b); i += speed.Pick(t, 7, 1, 1) {
		flipped := bytes.Clone(b)
		flipped[i] ^= 1 << (i % 8)
		refused(fmt.Sprintf("byte %d flipped", i), flipped)
		refused(fmt.Sprintf("cut at %d", i), b[:i])
	}
	refused("extra bytes at the end", append(bytes.Clone(b), 0))
	if _, err := raft.OpenBackup(filepath.Join(memdir.Quick(t), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing backup: %v", err)
	}
}

// TestBackupThatAnnouncesMuch: a short file costs little memory, whatever length it announces.
func TestBackupThatAnnouncesMuch(t *testing.T) {
	path := filepath.Join(memdir.Quick(t), "backup")
	b := binary.LittleEndian.AppendUint64([]byte("topogen raft backup 1\n"), 64<<20) // the length and the checksum of the head
	if err := os.WriteFile(path, append(b, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := raft.OpenBackup(path)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, raft.ErrImage) {
		t.Error(err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("%d bytes were allocated for a file of %d bytes", got, len(b)+1)
	}
}

// TestImagesOfOldLogs: logs of versions in which groups had no identity can be backed up and
// recovered.
func TestImagesOfOldLogs(t *testing.T) {
	t.Parallel()
	dir := memdir.Quick(t)
	unpackOldLogs(t, dir)
	for _, c := range []struct {
		from string
		want []uint64
	}{{"alone", []uint64{1, 2, 3, 4, 5}}, {"group/n2", []uint64{1, 2, 3, 4, 5, 7}}} {
		to := memdir.Quick(t)
		found(t, filepath.Join(dir, c.from), filepath.Join(to, "log"), "alone", "")
		if got := items(t, open(t, raft.Config{Dir: filepath.Join(to, "log")})); !slices.Equal(got, c.want) {
			t.Errorf("%s: the state is %v, want %v", c.from, got, c.want)
		}
	}
}
