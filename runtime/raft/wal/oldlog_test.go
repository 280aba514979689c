package wal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// oldLog copies a log that a version without marks has written. It has 40 entries in three
// segments, the last of which ends with a state, and snapshots at 9 and 29.
func oldLog(t *testing.T) (dir string, want wal.Stored) {
	t.Helper()
	dir = filepath.Join(memdir.New(t), "log")
	must(t, os.CopyFS(dir, os.DirFS("testdata/before-marks")))
	want = wal.Stored{Snapshot: snapshot(29, 1, "up to 29"), State: state(2, 3, 38)}
	for i := uint64(30); i <= 40; i++ {
		want.Entries = append(want.Entries, entry(i, 1, fmt.Sprint(i, strings.Repeat("x", int((i-1)*37%400)))))
	}
	return dir, want
}

const lastOfOldLog = "wal/0000000000000002-0000000000000023.wal"

// TestLogWithoutMarks: a log without marks opens unchanged. New records have marks, and Open
// applies the rules for marks to them.
func TestLogWithoutMarks(t *testing.T) {
	dir, want := oldLog(t)
	r, err := wal.Verify(dir)
	must(t, err)
	if r.Entries != 40 || r.Last != 40 || r.Segments != 3 {
		t.Errorf("%+v", r)
	}
	l, s := open(t, dir, wal.Options{})
	if d := diff(want, s); d != "" {
		t.Error(d)
	}
	before := copied(t, dir)[lastOfOldLog]
	if at := used(before); at == 0 || len(before) != segmentBytes {
		t.Fatalf("%d of %d bytes", at, len(before))
	}
	must(t, l.Save(nil, []*raftpb.Entry{entry(41, 2, "forty-one")}, true))
	synced := copied(t, dir)
	must(t, l.Save(state(2, 3, 41), []*raftpb.Entry{entry(42, 2, strings.Repeat("a", sector)), entry(43, 2, strings.Repeat("b", 1000))}, true))
	saved := copied(t, dir)
	must(t, l.Close())
	torn := filepath.Join(memdir.New(t), "log")

	// A sector of the last save is missing, and complete records follow.
	at := (used(synced[lastOfOldLog])/sector + 1) * sector
	clear(saved[lastOfOldLog][at : at+sector])
	saved.write(t, torn)
	l, s = open(t, torn, wal.Options{})
	if n := len(s.Entries); n != 12 || string(s.Entries[n-1].GetData()) != "forty-one" {
		t.Errorf("%d entries", n)
	}
	must(t, l.Close())

	// A sector of the records without marks is missing.
	clear(saved[lastOfOldLog][sector : 2*sector])
	saved.write(t, torn)
	if _, _, err := wal.Open(torn, own, wal.Options{}); !errors.Is(err, wal.ErrDamaged) {
		t.Error(err)
	}
}

// TestTornLogWithoutMarks: without marks, a complete record after a missing sector is proof of
// damage, as in the version that wrote the log. If no complete record follows, Open removes the
// rest.
func TestTornLogWithoutMarks(t *testing.T) {
	dir, want := oldLog(t)
	file := filepath.Join(dir, lastOfOldLog)
	b, err := os.ReadFile(file)
	must(t, err)
	end := used(b)
	for at := end / sector * sector; at > 0; at -= sector {
		torn := append([]byte(nil), b...)
		clear(torn[at : at+sector])
		must(t, os.WriteFile(file, torn, 0o600))
		l, s, err := wal.Open(dir, own, wal.Options{})
		last := at+sector >= end
		if last != (err == nil) || !last && !errors.Is(err, wal.ErrDamaged) {
			t.Errorf("without the sector at %d of %d bytes: %v", at, end, err)
		}
		if err != nil {
			continue
		}
		if n := len(s.Entries); n == 0 || n >= len(want.Entries) {
			t.Errorf("%d entries", n)
		}
		must(t, l.Close())
	}
}

// TestOldSegmentNotSynced: the modes that do not sync each segment before the next one remove
// an empty segment of any length at the end, as the version that wrote the log did.
func TestOldSegmentNotSynced(t *testing.T) {
	for _, size := range []int{0, 100, segmentBytes} {
		for _, mode := range []wal.Sync{wal.Always, wal.None} {
			dir, _ := oldLog(t)
			must(t, os.WriteFile(filepath.Join(dir, lastOfOldLog), make([]byte, size), 0o600))
			l, s, err := wal.Open(dir, own, wal.Options{Sync: mode})
			if mode == wal.Always {
				if !errors.Is(err, wal.ErrDamaged) {
					t.Errorf("%d bytes: %v", size, err)
				}
				continue
			}
			must(t, err)
			if n := len(s.Entries); n == 0 || s.Entries[n-1].GetIndex() != 34 {
				t.Errorf("%d entries", n)
			}
			must(t, l.Close())
		}
	}
}
