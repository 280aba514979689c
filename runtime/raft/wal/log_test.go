package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// segmentBytes is small, so that the logs in tests have many segments.
const segmentBytes = 4 << 10

func TestMain(m *testing.M) {
	etcdwal.SegmentSizeBytes = segmentBytes
	if do := children[os.Getenv(childVariable)]; do != nil {
		do()
		return
	}
	debug.SetGCPercent(1000)      // the engine allocates a buffer of a megabyte for each log
	debug.SetMemoryLimit(1 << 30) // an upper bound for the tests of size limits
	os.Exit(m.Run())
}

var own = wal.Identity{Topology: "bank", Group: "ledger", Node: 0x1f, Name: "n1"}

func entry(index, term uint64, data string) *raftpb.Entry {
	e := &raftpb.Entry{Index: &index, Term: &term}
	if data != "" {
		e.Data = []byte(data)
	}
	return e
}

func state(term, vote, commit uint64) *raftpb.HardState {
	return &raftpb.HardState{Term: &term, Vote: &vote, Commit: &commit}
}

func snapshot(index, term uint64, data string) *raftpb.Snapshot {
	return &raftpb.Snapshot{
		Data:     []byte(data),
		Metadata: &raftpb.SnapshotMetadata{Index: &index, Term: &term, ConfState: &raftpb.ConfState{Voters: []uint64{1}, AutoLeave: new(false)}},
	}
}

func open(t *testing.T, dir string, o wal.Options) (wal.Log, wal.Stored) {
	t.Helper()
	l, s, err := wal.Open(dir, own, o)
	if err != nil {
		t.Fatal(err)
	}
	return l, s
}

// reopened closes the log and opens it again.
func reopened(t *testing.T, l wal.Log, dir string) (wal.Log, wal.Stored) {
	t.Helper()
	must(t, l.Close())
	return open(t, dir, wal.Options{})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// diff returns the difference of two logs, or "". An entry without a type is equal to a normal
// entry.
func diff(want, got wal.Stored) string {
	if same(want, got) {
		return ""
	}
	want.Fresh, got.Fresh = false, false
	return "difference (-want +got):" + cmp.Diff(want, got, protocmp.Transform(), cmpopts.IgnoreUnexported(wal.Stored{}))
}

func same(a, b wal.Stored) bool {
	return proto.Equal(a.Snapshot, b.Snapshot) && proto.Equal(a.State, b.State) && slices.EqualFunc(a.Entries, b.Entries, sameEntry)
}

func sameEntry(a, b *raftpb.Entry) bool {
	return a.GetIndex() == b.GetIndex() && a.GetTerm() == b.GetTerm() && a.GetType() == b.GetType() && bytes.Equal(a.GetData(), b.GetData())
}

func TestFresh(t *testing.T) {
	dir := filepath.Join(memdir.Quick(t), "log")
	var logged bytes.Buffer
	o := wal.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))}
	l, s := open(t, dir, o)
	for _, want := range []string{`level=INFO msg="creating a new log"`, "folder=" + dir, `identity="n1 (group \"ledger\", topology \"bank\")"`} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("the output must contain %s, got: %s", want, &logged)
		}
	}
	if !s.Fresh || s.Snapshot != nil || len(s.Entries) > 0 || s.State == nil {
		t.Errorf("%+v", s)
	}
	logged.Reset()
	must(t, l.Close())
	if l, s = open(t, dir, o); s.Fresh || logged.Len() > 0 {
		t.Errorf("an existing log must not be fresh, got: %s", &logged)
	}
	must(t, l.Close())
	must(t, l.Close())
	if err := l.Save(state(1, 1, 0), nil, true); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("a closed log must refuse to save, got: %v", err)
	}
}

func TestIdentity(t *testing.T) {
	dir := memdir.Quick(t)
	l, _ := open(t, dir, wal.Options{})
	must(t, l.Close())
	const refusal = ` is the log of n1 (group "ledger", topology "bank"), not of `
	for want, other := range map[string]wal.Identity{
		`n1 (group "ledger", topology "shop")`:          {Topology: "shop", Group: own.Group, Node: own.Node, Name: "n1"},
		`n1 (group "", topology "bank")`:                {Topology: own.Topology, Group: "", Node: own.Node, Name: "n1"},
		`n3; TOPOGEN_NODE says which node this is`:      {Topology: own.Topology, Group: own.Group, Node: 0x2f, Name: "n3"},
		`"n 3\n"; TOPOGEN_NODE says which node this is`: {Topology: own.Topology, Group: own.Group, Node: 0x2f, Name: "n 3\n"},
		`node 2f; TOPOGEN_NODE says which node this is`: {Topology: own.Topology, Group: own.Group, Node: 0x2f},
	} {
		_, _, err := wal.Open(dir, other, wal.Options{})
		if !errors.Is(err, wal.ErrIdentity) || err.Error() != "wal: "+dir+refusal+want {
			t.Errorf("%v must not open the log, got: %v", other, err)
		}
	}
	nameless := own
	nameless.Name = "" // as in logs of versions without names
	l, _, err := wal.Open(dir, nameless, wal.Options{})
	must(t, err)
	must(t, l.Close())
	old := memdir.Quick(t)
	l, _, err = wal.Open(old, nameless, wal.Options{})
	must(t, err)
	l, _ = reopened(t, l, old)
	must(t, l.Close())
	if r, err := wal.Verify(old); err != nil || r.Identity != nameless {
		t.Errorf("%+v, %v", r, err)
	}
	if _, _, err := wal.Open(memdir.Quick(t), wal.Identity{Name: strings.Repeat("n", 2000)}, wal.Options{}); err == nil {
		t.Error("a long name must be refused")
	}
	if _, _, err := wal.Open(memdir.Quick(t), wal.Identity{Group: strings.Repeat("g", 2000)}, wal.Options{}); err == nil {
		t.Error("a long group must be refused")
	}
}

func TestInUse(t *testing.T) {
	dir := memdir.Quick(t)
	l, _ := open(t, dir, wal.Options{})
	if _, _, err := wal.Open(dir, own, wal.Options{}); !errors.Is(err, wal.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
	child := start(t, "open", dir)
	if line := child.line(t); !strings.Contains(line, "in use by another process") {
		t.Error(line)
	}
	must(t, l.Close())
	child = start(t, "open", dir)
	if line := child.line(t); line != "opened" {
		t.Error(line)
	}
}

func TestWrongDirectories(t *testing.T) {
	dir := memdir.Quick(t)
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, path := range []string{file, filepath.Join(file, "log"), filepath.Join(dir, "missing", "log")} {
		if _, _, err := wal.Open(path, own, wal.Options{}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestLeftovers: Open removes incomplete files that a crash has left.
func TestLeftovers(t *testing.T) {
	dir := memdir.Quick(t)
	making := filepath.Join(dir, "wal.tmp")
	must(t, os.Mkdir(making, 0o700))
	must(t, os.WriteFile(filepath.Join(making, "0000000000000000-0000000000000000.wal"), []byte("half"), 0o600))
	l, _ := open(t, dir, wal.Options{})
	must(t, l.Save(state(1, 1, 0), []*raftpb.Entry{entry(1, 1, "a")}, true))
	must(t, l.Close())
	for _, name := range []string{"0.tmp", "9.tmp"} { // the engine creates 0.tmp again
		must(t, os.WriteFile(filepath.Join(dir, "wal", name), []byte("half"), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(dir, "snap", "9.tmp"), []byte("half"), 0o600))
	must(t, os.Mkdir(making, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "snap", "0000000000000001-0000000000000001.snap"), []byte("half"), 0o600))
	l, s := open(t, dir, wal.Options{})
	if len(s.Entries) != 1 || s.Snapshot != nil {
		t.Errorf("%+v", s)
	}
	if left := slices.Concat(files(t, dir, "snap", "*"), files(t, dir, "wal", "9.tmp"), files(t, making)); len(left) > 0 {
		t.Error(left)
	}
	must(t, l.Close())
}

// TestSavesReachTheSystem: after a save, the operating system has the data, in each sync mode. So a process that is killed
// loses nothing; TestKilledProcess kills one.
func TestSavesReachTheSystem(t *testing.T) {
	for _, mode := range []wal.Sync{wal.Always, wal.Interval, wal.None} {
		dir, second := memdir.Quick(t), memdir.Quick(t)
		l, _ := open(t, dir, wal.Options{Sync: mode, Interval: time.Hour})
		for i := range uint64(3) { // the first save of a process is synced in each mode
			must(t, l.Save(state(1, 1, i+1), []*raftpb.Entry{entry(i+1, 1, "a")}, true))
		}
		copied(t, dir).write(t, second)
		killed, s := open(t, second, wal.Options{})
		if len(s.Entries) != 3 || s.State.GetCommit() != 3 {
			t.Errorf("sync: %v: the system has %d of 3 entries, and the state %v", mode, len(s.Entries), s.State)
		}
		must(t, killed.Close())
		must(t, l.Close())
	}
}

func files(t *testing.T, parts ...string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(parts...))
	must(t, err)
	return all
}

func TestInvalid(t *testing.T) {
	dir := memdir.Quick(t)
	files, _ := open(t, filepath.Join(dir, "log"), wal.Options{})
	disk, _, err := wal.NewDisk(1).Open(own, wal.Options{})
	must(t, err)
	for name, l := range map[string]wal.Log{"files": files, "disk": disk} {
		must(t, l.Save(state(1, 1, 0), []*raftpb.Entry{entry(1, 1, ""), entry(2, 1, "b")}, true))
		must(t, l.SaveSnapshot(snapshot(1, 1, "s")))
		for _, entries := range [][]*raftpb.Entry{
			{nil},
			{{}},
			{entry(3, 0, "")},
			{entry(4, 1, "")},
			{entry(1, 1, "")},
			{entry(3, 1, ""), entry(5, 1, "")},
			{{Index: new(uint64(3)), Term: new(uint64(1)), Data: make([]byte, 64<<20)}},
		} {
			if err := l.Save(nil, entries, true); !errors.Is(err, wal.ErrInvalid) {
				t.Errorf("%s: Save must refuse %v, got: %v", name, entries, err)
			}
		}
		for _, s := range []*raftpb.Snapshot{nil, {}, snapshot(1, 2, ""), snapshot(0, 1, "")} {
			if err := l.SaveSnapshot(s); !errors.Is(err, wal.ErrInvalid) {
				t.Errorf("%s: SaveSnapshot must refuse %v, got: %v", name, s, err)
			}
		}
		must(t, l.SaveSnapshot(snapshot(1, 1, "s"))) // the log already has it
		must(t, l.Save(nil, []*raftpb.Entry{entry(3, 1, "c")}, true))
		must(t, l.Close())
	}
}

// TestRelease: the log keeps two snapshots and the segments since the older one.
func TestRelease(t *testing.T) {
	dir := memdir.New(t)
	l, _ := open(t, dir, wal.Options{})
	const snapshots, each = 10, 100
	for i := range uint64(snapshots * each) {
		must(t, l.Save(state(1, 1, i), []*raftpb.Entry{entry(i+1, 1, fmt.Sprintf("data of %d", i+1))}, true))
		if (i+1)%each == 0 {
			must(t, l.SaveSnapshot(snapshot(i+1, 1, fmt.Sprintf("up to %d", i+1))))
		}
	}
	segments, snaps := files(t, dir, "wal", "*.wal"), files(t, dir, "snap", "*")
	if len(segments) > 10 || len(snaps) != 2 {
		t.Errorf("%d segments, %d snapshots", len(segments), len(snaps))
	}
	l, s := reopened(t, l, dir)
	if s.Snapshot.GetMetadata().GetIndex() != snapshots*each || len(s.Entries) > 0 || s.State.GetCommit() != snapshots*each {
		t.Errorf("%+v", s)
	}
	must(t, l.Close())

	// Without the newest snapshot, the log has the older one and the entries since then.
	must(t, os.Remove(snaps[1]))
	l, s = open(t, dir, wal.Options{})
	if s.Snapshot.GetMetadata().GetIndex() != (snapshots-1)*each || len(s.Entries) != each {
		t.Errorf("%+v, %d entries", s.Snapshot, len(s.Entries))
	}
	must(t, l.Close())

	// Without both snapshots the log is damaged.
	must(t, os.Remove(snaps[0]))
	if _, _, err := wal.Open(dir, own, wal.Options{}); !errors.Is(err, wal.ErrDamaged) || !strings.Contains(err.Error(), ".snap") {
		t.Error(err)
	}
}

// TestMissingSegment: Open detects a missing segment.
func TestMissingSegment(t *testing.T) {
	dir := memdir.New(t)
	l, _ := open(t, dir, wal.Options{})
	for i := range uint64(300) {
		must(t, l.Save(state(1, 1, i), []*raftpb.Entry{entry(i+1, 1, "some data")}, true))
	}
	must(t, l.Close())
	segments := files(t, dir, "wal", "*.wal")
	if len(segments) < 4 {
		t.Fatal(segments)
	}
	for i, name := range segments[:len(segments)-1] {
		must(t, os.Rename(name, filepath.Join(dir, "aside")))
		if _, _, err := wal.Open(dir, own, wal.Options{}); !errors.Is(err, wal.ErrDamaged) {
			t.Errorf("without segment %d: %v", i, err)
		}
		must(t, os.Rename(filepath.Join(dir, "aside"), name))
	}
	must(t, os.WriteFile(filepath.Join(dir, "wal", "x.wal"), nil, 0o600))
	if _, _, err := wal.Open(dir, own, wal.Options{}); !errors.Is(err, wal.ErrDamaged) {
		t.Error(err)
	}
	must(t, os.RemoveAll(filepath.Join(dir, "wal")))
	must(t, os.WriteFile(filepath.Join(dir, "snap", "0000000000000001-0000000000000001.snap"), nil, 0o600))
	if _, _, err := wal.Open(dir, own, wal.Options{}); !errors.Is(err, wal.ErrDamaged) {
		t.Error(err)
	}
}

// TestReplacedBySnapshot: a snapshot whose last entry is not in the log replaces all entries.
func TestReplacedBySnapshot(t *testing.T) {
	dir := memdir.Quick(t)
	l, _ := open(t, dir, wal.Options{})
	must(t, l.Save(state(1, 1, 1), []*raftpb.Entry{entry(1, 1, "a"), entry(2, 1, "b"), entry(3, 1, "c")}, true))
	must(t, l.SaveSnapshot(snapshot(2, 5, "s")))
	l, s := reopened(t, l, dir)
	if want := (wal.Stored{Snapshot: snapshot(2, 5, "s"), State: state(5, 0, 2)}); diff(want, s) != "" {
		t.Error(diff(want, s))
	}
	must(t, l.Save(nil, []*raftpb.Entry{entry(3, 5, "d")}, true))
	l, s = reopened(t, l, dir)
	if want := (wal.Stored{Snapshot: snapshot(2, 5, "s"), State: state(5, 0, 2), Entries: []*raftpb.Entry{entry(3, 5, "d")}}); diff(want, s) != "" {
		t.Error(diff(want, s))
	}
	must(t, l.Close())
}

// TestNoSnapshotDirectory: a power failure may leave a new log without the directory of its
// snapshots, whose name was not synced yet.
func TestNoSnapshotDirectory(t *testing.T) {
	dir := memdir.New(t)
	l, _ := open(t, dir, wal.Options{})
	must(t, l.Save(state(1, 1, 1), []*raftpb.Entry{entry(1, 1, "one")}, true))
	must(t, l.Close())
	must(t, os.Remove(filepath.Join(dir, "snap")))
	l, s := open(t, dir, wal.Options{})
	if len(s.Entries) != 1 {
		t.Errorf("%+v", s)
	}
	must(t, l.SaveSnapshot(snapshot(1, 1, "a state")))
	must(t, l.Close())
}
