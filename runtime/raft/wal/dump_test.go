package wal_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/raft/wal"
)

func TestVerify(t *testing.T) {
	d := smallLog(t, entry(7, 2, strings.Repeat("seven", 300)))
	r, err := wal.Verify(d.dir)
	must(t, err)
	if want := (wal.Report{
		Identity: own, Segments: 2, Snapshots: 1, Records: r.Records, Entries: 7,
		First: 3, Last: 7, Snapshot: 2, Term: 2, Commit: 5,
	}); r != want {
		t.Errorf("%+v", r)
	}
	if _, err := wal.Verify(filepath.Join(d.dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := wal.Verify(memdir.Quick(t)); !errors.Is(err, wal.ErrNoLog) {
		t.Error(err)
	}

	// The report contains the records that Open will remove.
	content := d.files[d.last(t)]
	end := len(strings.TrimRight(string(content), "\x00"))
	clear(content[end-512:])
	must(t, os.WriteFile(d.last(t), content, 0o600))
	r, err = wal.Verify(d.dir)
	must(t, err)
	if r.Cut == nil || r.Cut.File != d.last(t) || r.Last != 6 || r.Cut.Bytes < 500 {
		t.Errorf("%+v", r)
	}
}

// TestSnapshotsAlone: a directory with snapshots but without segments is a damaged log.
func TestSnapshotsAlone(t *testing.T) {
	d := smallLog(t)
	must(t, os.RemoveAll(filepath.Join(d.dir, "wal")))
	_, verifyErr := wal.Verify(d.dir)
	_, _, openErr := wal.Open(d.dir, own, wal.Options{})
	for _, err := range []error{verifyErr, openErr} {
		damage, is := errors.AsType[*wal.DamageError](err)
		if !is || damage.File != filepath.Join(d.dir, "wal") || !strings.Contains(damage.Reason, "the segments are missing") {
			t.Error(err)
		}
	}
	if !strings.Contains(openErr.Error(), `"topoctl log verify `+d.dir+`"`) {
		t.Errorf("the error must name the command that explains what to do, got: %v", openErr)
	}
}

// TestFind: Find returns the logs of one group and of several groups, searches no deeper, and
// ignores directories without a log.
func TestFind(t *testing.T) {
	root := memdir.New(t)
	for _, name := range []string{"stock/n2", "stock/n1", "ledger", "a/b/c", "[x/n1"} {
		must(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700))
		l, _ := open(t, filepath.Join(root, name), wal.Options{})
		must(t, l.Close())
	}
	must(t, os.MkdirAll(filepath.Join(root, "empty", "wal"), 0o700))
	for dir, want := range map[string][]string{
		root:                          {"[x/n1", "ledger", "stock/n1", "stock/n2"},
		filepath.Join(root, "stock"):  {"stock/n1", "stock/n2"},
		filepath.Join(root, "empty"):  nil,
		filepath.Join(root, "ledger"): nil,
		filepath.Join(root, "none"):   nil,
	} {
		got := wal.Find(dir)
		for i, name := range want {
			want[i] = filepath.Join(root, name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

func TestDumpEnds(t *testing.T) {
	d := smallLog(t)
	enough := errors.New("enough")
	n := 0
	_, err := wal.Dump(d.dir, func(r wal.Record) error {
		if n++; n == 3 {
			return enough
		}
		if filepath.Dir(r.File) != filepath.Join(d.dir, "wal") || r.Length == 0 || r.Type == "" {
			t.Errorf("%+v", r)
		}
		return nil
	})
	if err != enough || n != 3 {
		t.Error(n, err)
	}
}

// FuzzSnapshot: any content of a snapshot file is read in bounded memory and without a
// panic, and Open and Verify agree whether the file is valid.
func FuzzSnapshot(f *testing.F) {
	dir := filepath.Join(memdir.New(f), "log")
	l, _, err := wal.Open(dir, own, wal.Options{})
	if err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(l.SaveSnapshot(snapshot(4, 1, "state")), commit(l, snapshot(5, 1, "members")), l.Close()); err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"0000000000000001-0000000000000004.snap", "0000000000000001-0000000000000005.snap"} {
		b, err := os.ReadFile(filepath.Join(dir, "snap", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	newest := filepath.Join(dir, "snap", "0000000000000001-0000000000000005.snap")
	f.Fuzz(func(t *testing.T, content []byte) {
		must(t, os.WriteFile(newest, content, 0o600))
		var verifyErr error
		allocated.Within(t, 1<<20+50*len(content), func() { _, verifyErr = wal.Verify(dir) })
		l, s, err := wal.Open(dir, own, wal.Options{})
		if err == nil {
			err = errors.Join(checkBody(s), l.Close())
		}
		if (err == nil) != (verifyErr == nil) || err != nil && !errors.Is(err, wal.ErrDamaged) {
			t.Fatalf("Open and Verify must agree, got %v and %v", err, verifyErr)
		}
	})
}

// FuzzSegment: any content of a segment is read in bounded memory and without a panic. If the
// log opens, entries can be saved to it.
func FuzzSegment(f *testing.F) {
	dir := filepath.Join(memdir.New(f), "log")
	l, _, err := wal.Open(dir, own, wal.Options{})
	if err != nil {
		f.Fatal(err)
	}
	err = errors.Join(l.Save(state(1, 1, 1), []*raftpb.Entry{entry(1, 1, "one"), entry(2, 1, strings.Repeat("two", 500))}, true), l.Close())
	if err != nil {
		f.Fatal(err)
	}
	name := filepath.Join(dir, "wal", "0000000000000000-0000000000000000.wal")
	right, err := os.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(right)
	f.Add(right[:1000])
	f.Add(append(append([]byte(nil), right...), "behind"...))
	f.Add([]byte{})
	torn := append([]byte(nil), right...)
	clear(torn[512:1024])
	f.Add(torn)
	old, err := os.ReadFile(filepath.Join("testdata", "before-marks", "wal", "0000000000000000-0000000000000000.wal"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(old)
	f.Fuzz(func(t *testing.T, content []byte) {
		must(t, os.WriteFile(name, content, 0o600))
		var verifyErr error
		allocated.Within(t, 1<<20+50*len(content), func() { _, verifyErr = wal.Verify(dir) })
		l, s, err := wal.Open(dir, own, wal.Options{})
		if (err == nil) != (verifyErr == nil) && !errors.Is(err, wal.ErrIdentity) {
			t.Fatalf("Open and Verify must agree, got %v and %v", err, verifyErr)
		}
		if err != nil {
			return
		}
		last := s.Snapshot.GetMetadata().GetIndex() + uint64(len(s.Entries))
		must(t, l.Save(nil, []*raftpb.Entry{entry(last+1, s.State.GetTerm()+1, "more")}, true))
		must(t, l.Close())
		l, s, err = wal.Open(dir, own, wal.Options{})
		must(t, err)
		if n := len(s.Entries); n == 0 || s.Entries[n-1].GetIndex() != last+1 {
			t.Fatal("the saved entry is missing")
		}
		must(t, l.Close())
	})
}
