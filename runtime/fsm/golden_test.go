package fsm_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/topogen/topogen/runtime/fsm"
)

// golden is a log that an older version of this package wrote, with its effects.
type golden struct {
	Options fsm.Options
	Entries []struct {
		Index, Term uint64
		Data        []byte
		Results     []outcome
	}
	Snapshots []struct {
		After    int // entries
		Sessions int
		Data     []byte
		Values   []int64
		Upcoming [][]byte
	}
}

// TestOldLogs applies logs of version 1 from the beginning and from each of their
// snapshots. Results, states and sessions must equal those of that version.
func TestOldLogs(t *testing.T) {
	text, err := os.ReadFile("testdata/v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var logs []golden
	if err := json.Unmarshal(text, &logs); err != nil {
		t.Fatal(err)
	}
	for i := range logs {
		logs[i].replay(t, -1)
		for j := range logs[i].Snapshots {
			logs[i].replay(t, j)
		}
	}
}

// replay applies the entries after a snapshot; -1: all entries.
func (g *golden) replay(t *testing.T, snapshot int) {
	r := fsm.NewReplicated(noteDefinition, g.Options)
	begin := 0
	if snapshot >= 0 {
		if err := r.Restore(g.Snapshots[snapshot].Data); err != nil {
			t.Fatal(err)
		}
		begin = g.Snapshots[snapshot].After
		g.check(t, r, snapshot)
	}
	for i, e := range g.Entries[begin:] {
		var got []outcome
		if err := r.Apply(e.Index, e.Term, e.Data, func(client, sequence uint64, a fsm.Applied) {
			o := outcomeOf(client, sequence, a)
			o.Rejected, o.NoResult, o.Data = false, false, "" // fields that version 1 did not have
			got = append(got, o)
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e.Results, got); diff != "" {
			t.Fatalf("from snapshot %d, entry %d (-then +now):\n%s", snapshot, e.Index, diff)
		}
		for j := range g.Snapshots {
			if g.Snapshots[j].After == begin+i+1 {
				g.check(t, r, j)
				r = g.restarted(t, r)
				g.check(t, r, j)
			}
		}
	}
}

// restarted returns a replica that starts from a snapshot of this version.
func (g *golden) restarted(t *testing.T, r *replicated) *replicated {
	t.Helper()
	b, err := r.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	r = fsm.NewReplicated(noteDefinition, g.Options)
	if err := r.Restore(b); err != nil {
		t.Fatal(err)
	}
	if again, err := r.AppendSnapshot(nil); err != nil || !bytes.Equal(b, again) {
		t.Fatalf("the snapshot\n%q\nis restored as\n%q", b, again)
	}
	return r
}

// check compares the state with the state at a snapshot.
func (g *golden) check(t *testing.T, r *replicated, snapshot int) {
	t.Helper()
	want := &g.Snapshots[snapshot]
	r.View(func(s *tape) {
		if !slices.Equal(s.values, want.Values) {
			t.Errorf("at snapshot %d: state %v, want %v", snapshot, s.values, want.Values)
		}
	})
	if r.Sessions() != want.Sessions {
		t.Errorf("at snapshot %d: %d sessions, want %d", snapshot, r.Sessions(), want.Sessions)
	}
	var upcoming [][]byte
	for _, u := range r.Upcoming() {
		b, _ := noteCodec.Append(nil, &u)
		upcoming = append(upcoming, b)
	}
	if !slices.EqualFunc(upcoming, want.Upcoming, bytes.Equal) {
		t.Errorf("at snapshot %d: upcoming %v, want %v", snapshot, upcoming, want.Upcoming)
	}
}
