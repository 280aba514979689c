package wal_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// Only the leader of term 1 has the entries uncommitted, which are therefore not committed. A
// later leader replaces them by its own entries or its snapshot, and commits those.
var (
	uncommitted = []*raftpb.Entry{entry(1, 1, "one"), entry(2, 1, "two"), entry(3, 1, "uncommitted"), entry(4, 1, "uncommitted"), entry(5, 1, "uncommitted")}
	later       = []*raftpb.Entry{entry(3, 2, "three"), entry(4, 2, strings.Repeat("four", 200)), entry(5, 2, "five")}
)

// overwrite replaces the uncommitted entries in one of two ways.
var overwrite = map[string]func(l wal.Log) error{
	"entries":  func(l wal.Log) error { return l.Save(state(2, 2, 5), later, true) },
	"snapshot": func(l wal.Log) error { return l.SaveSnapshot(snapshot(9, 2, "nine")) },
}

// checkUncommitted returns an error if an uncommitted entry of term 1 is committed.
func checkUncommitted(s wal.Stored) error {
	for _, e := range s.Entries {
		if e.GetIndex() > 2 && e.GetTerm() == 1 && s.State.GetCommit() >= e.GetIndex() {
			return fmt.Errorf("entry %d of term 1 must not be committed, got the state %v", e.GetIndex(), s.State)
		}
	}
	return nil
}

// TestNoCrashCommitsOverwrittenEntries: on the simulated disk, no part of a save that survives a
// crash commits the entries that the save replaces.
func TestNoCrashCommitsOverwrittenEntries(t *testing.T) {
	for what, save := range overwrite {
		for seed := range uint64(200) {
			d := wal.NewDisk(seed)
			l, _, err := d.Open(wal.Identity{}, wal.Options{})
			must(t, err)
			must(t, l.Save(state(1, 1, 2), uncommitted, true))
			d.FailSync()
			if save(l) == nil {
				t.Fatalf("%s: the sync must fail", what)
			}
			d.Crash()
			_, s, err := d.Open(wal.Identity{}, wal.Options{})
			must(t, err)
			if err := checkUncommitted(s); err != nil {
				t.Fatalf("%s, seed %d: %v", what, seed, err)
			}
		}
	}
}

// TestNoTornWriteCommitsOverwrittenEntries: in files, no subset of the records or sectors of a
// save commits the entries that the save replaces.
func TestNoTornWriteCommitsOverwrittenEntries(t *testing.T) {
	const segment = "wal/0000000000000000-0000000000000000.wal"
	for what, save := range overwrite {
		dir, torn := memdir.New(t), memdir.New(t)
		l, _ := open(t, dir, wal.Options{})
		must(t, l.Save(state(1, 1, 2), uncommitted, true))
		before := copied(t, dir)
		must(t, save(l))
		after := copied(t, dir)
		must(t, l.Close())
		check := func(b []byte) {
			t.Helper()
			img := maps.Clone(after) // the snapshot file is synced first, so it is always complete
			img[segment] = b
			img.write(t, torn)
			l, s, err := wal.Open(torn, own, wal.Options{})
			must(t, err)
			if err := checkUncommitted(s); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			must(t, l.Close())
		}
		first, records := used(before[segment]), 0
		for _, at := range offsets(after[segment]) { // the write ended after this record
			if at < first {
				continue
			}
			records++
			check(append(bytes.Clone(after[segment][:at]), make([]byte, segmentBytes-at)...))
		}
		if records < 3 {
			t.Errorf("%s: the save must have at least 3 records, got %d", what, records)
		}
		from := first / sector
		for missing := range 1 << (1 + used(after[segment])/sector - from) {
			b := bytes.Clone(after[segment])
			for i := from; missing>>(i-from) > 0; i++ {
				if missing>>(i-from)&1 != 0 {
					copy(b[i*sector:(i+1)*sector], before[segment][i*sector:])
				}
			}
			check(b)
		}
	}
}
