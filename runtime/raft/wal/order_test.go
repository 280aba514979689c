package wal_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// What a leader of term 1 has and nobody else; then a later leader's entries, or
// its snapshot, take their place, and these alone are committed.
var (
	lonely = []*raftpb.Entry{entry(1, 1, "one"), entry(2, 1, "two"), entry(3, 1, "lonely"), entry(4, 1, "lonely"), entry(5, 1, "lonely")}
	later  = []*raftpb.Entry{entry(3, 2, "three"), entry(4, 2, strings.Repeat("four", 200)), entry(5, 2, "five")}
)

// overwrite saves what takes the place of the lonely ones, in either way.
var overwrite = map[string]func(l wal.Log) error{
	"entries":  func(l wal.Log) error { return l.Save(state(2, 2, 5), later, true) },
	"snapshot": func(l wal.Log) error { return l.SaveSnapshot(snapshot(9, 2, "nine")) },
}

// checkLonely says whether entries of term 1 that nobody else has are committed.
func checkLonely(s wal.Stored) error {
	for _, e := range s.Entries {
		if e.GetIndex() > 2 && e.GetTerm() == 1 && s.State.GetCommit() >= e.GetIndex() {
			return fmt.Errorf("entry %d of term 1 is committed: %v", e.GetIndex(), s.State)
		}
	}
	return nil
}

// TestNoCrashCommitsWhatIsOverwritten, on the simulated disk: whatever part of a
// save survives.
func TestNoCrashCommitsWhatIsOverwritten(t *testing.T) {
	for what, save := range overwrite {
		for seed := range uint64(200) {
			d := wal.NewDisk(seed)
			l, _, err := d.Open(wal.Identity{}, wal.Options{})
			must(t, err)
			must(t, l.Save(state(1, 1, 2), lonely, true))
			d.FailSync()
			if save(l) == nil {
				t.Fatalf("%s: the sync does not fail", what)
			}
			d.Crash()
			_, s, err := d.Open(wal.Identity{}, wal.Options{})
			must(t, err)
			if err := checkLonely(s); err != nil {
				t.Fatalf("%s, seed %d: %v", what, seed, err)
			}
		}
	}
}

// TestNoTornWriteCommitsWhatIsOverwritten, in files: wherever the segment ends.
func TestNoTornWriteCommitsWhatIsOverwritten(t *testing.T) {
	for what, save := range overwrite {
		dir := inMemory(t)
		l, _ := open(t, dir, wal.Options{})
		must(t, l.Save(state(1, 1, 2), lonely, true))
		file := files(t, dir, "wal", "*.wal")[0]
		before, err := os.ReadFile(file)
		must(t, err)
		must(t, save(l))
		d := newDamaged(t, l, dir)
		after := d.files[file]
		first, end := 0, len(after)
		for first < len(before) && before[first] == after[first] {
			first++
		}
		for end > 0 && after[end-1] == 0 {
			end--
		}
		opened := 0
		for n := first; n <= end; n++ {
			for name, b := range d.files { // opening removes a snapshot that the log does not name
				must(t, os.WriteFile(name, b, 0o600))
			}
			s, err := d.open(t, file, after[:n])
			if err != nil {
				continue // refused
			}
			opened++
			if err := checkLonely(s); err != nil {
				t.Fatalf("%s, %d of %d bytes: %v", what, n-first, end-first, err)
			}
		}
		if opened < (end-first)/2 {
			t.Errorf("%s: only %d of %d lengths open", what, opened, end-first)
		}
	}
}
