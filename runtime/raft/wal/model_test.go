package wal_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// model is the expected content of a log, in the simplest form. The values that it points to
// do not change.
type model struct {
	snapshot *raftpb.Snapshot
	state    *raftpb.HardState
	entries  []*raftpb.Entry // after the snapshot
}

func (m model) base() uint64 { return m.snapshot.GetMetadata().GetIndex() }

func (m model) last() uint64 { return m.base() + uint64(len(m.entries)) }

func (m model) term(index uint64) uint64 {
	switch {
	case index == m.base():
		return m.snapshot.GetMetadata().GetTerm()
	case index < m.base() || index > m.last():
		return 0
	}
	return m.entries[index-m.base()-1].GetTerm()
}

func (m model) withState(s *raftpb.HardState) model {
	m.state = s
	return m
}

func (m model) withEntry(e *raftpb.Entry) model {
	n := e.GetIndex() - m.base() - 1
	m.entries = append(m.entries[:n:n], e)
	return m
}

func (m model) withSnapshot(s *raftpb.Snapshot) model {
	index, term := s.GetMetadata().GetIndex(), s.GetMetadata().GetTerm()
	if m.term(index) == term {
		m.entries = m.entries[index-m.base():]
	} else {
		m.entries = nil
	}
	m.snapshot = s
	vote := m.state.GetVote()
	if term > m.state.GetTerm() {
		vote = 0
	}
	m.state = state(max(term, m.state.GetTerm()), vote, max(index, m.state.GetCommit()))
	return m
}

// stored returns the result of Open for a log with this content.
func (m model) stored() wal.Stored {
	term, vote := m.state.GetTerm(), m.state.GetVote()
	if last := m.term(m.last()); last > term {
		term, vote = last, 0
	}
	return wal.Stored{Snapshot: m.snapshot, State: state(term, vote, min(m.state.GetCommit(), m.last())), Entries: m.entries}
}

// comparison compares a log with the model.
type comparison struct {
	open  func(wal.Options) (wal.Log, wal.Stored, error)
	log   wal.Log
	sync  wal.Sync
	model model
	past  []model // all contents that a crash may leave; the last is the current one
	term  uint64
}

func (m *comparison) reopen(t *rapid.T) {
	m.sync = wal.Sync(rapid.IntRange(0, 2).Draw(t, "mode"))
	l, s, err := m.open(wal.Options{Sync: m.sync})
	if err != nil {
		t.Fatal(err)
	}
	m.log = l
	if err := checkBody(s); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(m.past, func(p model) bool { return same(p.stored(), s) })
	if i < 0 {
		t.Fatalf("Open must return one of %d possible contents; the last of them has this\n%s", len(m.past), diff(m.past[len(m.past)-1].stored(), s))
	}
	m.model = m.past[i]
	m.model.state = s.State // Open may have corrected it
	m.past = []model{m.model}
}

// step adds a content that a crash may leave.
func (m *comparison) step(now model) {
	m.model = now
	m.past = append(m.past, now)
}

func (m *comparison) synced() { m.past = m.past[len(m.past)-1:] }

func (m *comparison) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"save":     m.save,
		"append":   m.save,
		"snapshot": m.snapshot,
		"sync": func(t *rapid.T) {
			if err := m.log.Sync(); err != nil {
				t.Fatal(err)
			}
			m.synced()
		},
		"close": func(t *rapid.T) {
			if err := m.log.Close(); err != nil {
				t.Fatal(err)
			}
			m.synced()
			m.reopen(t)
		},
	}
}

func (m *comparison) save(t *rapid.T) {
	first := rapid.Uint64Range(m.model.base()+1, m.model.last()+1).Draw(t, "first")
	if rapid.Bool().Draw(t, "append") {
		first = m.model.last() + 1
	}
	m.term = max(m.term, m.model.term(m.model.last())) + rapid.Uint64Range(0, 1).Draw(t, "term")
	m.term = max(m.term, 1)
	var entries []*raftpb.Entry
	for i := range rapid.Uint64Range(0, 5).Draw(t, "entries") {
		data := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "data")
		if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
			data = make([]byte, rapid.IntRange(500, 6000).Draw(t, "length"))
		}
		entries = append(entries, &raftpb.Entry{Type: raftpb.EntryType(i % 3).Enum(), Index: new(first + i), Term: new(m.term), Data: data})
	}
	var s *raftpb.HardState
	if rapid.Bool().Draw(t, "state") {
		s = state(m.term, rapid.Uint64Range(0, 3).Draw(t, "vote"), rapid.Uint64Range(m.model.base(), m.model.last()).Draw(t, "commit"))
	}
	sync := rapid.Bool().Draw(t, "synced")
	if err := m.log.Save(s, entries, sync); err != nil {
		t.Fatal(err)
	}
	after := m.model.state
	if s != nil {
		after = s
	}
	before := after // its commit index does not include the new entries
	if len(entries) > 0 {
		before = state(after.GetTerm(), after.GetVote(), min(after.GetCommit(), first-1))
	}
	m.step(m.model.withState(before))
	for _, e := range entries {
		m.step(m.model.withEntry(e))
	}
	m.step(m.model.withState(after))
	if sync && m.sync == wal.Always {
		m.synced()
	}
}

func (m *comparison) snapshot(t *rapid.T) {
	index := rapid.Uint64Range(m.model.base()+1, m.model.last()+3).Draw(t, "index")
	term := m.model.term(index)
	if term == 0 || rapid.IntRange(0, 4).Draw(t, "other") == 0 {
		m.term++
		term = m.term
	}
	s := snapshot(index, term, fmt.Sprint(index))
	var err error
	if rapid.Bool().Draw(t, "body") {
		err = commit(m.log, s)
	} else {
		err = m.log.SaveSnapshot(s)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.step(m.model.withSnapshot(s))
	m.synced()
}

// commit saves a snapshot whose body is its index.
func commit(l wal.Log, s *raftpb.Snapshot) error {
	w, err := l.CreateSnapshot()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(w, s.GetMetadata().GetIndex())
	return errors.Join(err, w.Commit(s))
}

// checkBody checks that the body is the index of the snapshot.
func checkBody(s wal.Stored) error {
	if s.Snapshot == nil || s.BodySize < 0 {
		return nil
	}
	r, err := s.OpenBody()
	if err != nil {
		return err
	}
	b, err := io.ReadAll(r)
	if want := fmt.Sprint(s.Snapshot.GetMetadata().GetIndex()); string(b) != want {
		err = fmt.Errorf("the body must be %q, got %q: %w", want, b, err)
	}
	return errors.Join(err, r.Close())
}

// TestFilesMatchModel compares a log in files with the model. It saves and replaces entries,
// saves snapshots, closes and opens the log.
func TestFilesMatchModel(t *testing.T) {
	speed.Checks(t, 25, 100, 5000)
	root := memdir.New(t)
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			t.Fatal(err)
		}
		m := comparison{past: []model{{state: state(0, 0, 0)}}}
		m.open = func(o wal.Options) (wal.Log, wal.Stored, error) { return wal.Open(dir, own, o) }
		m.reopen(t)
		t.Repeat(m.actions())
		if err := m.log.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := wal.Verify(dir); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDiskMatchesModel compares a log on a simulated disk with the model. It does the same calls
// as TestFilesMatchModel, and also crashes the disk.
func TestDiskMatchesModel(t *testing.T) {
	speed.Checks(t, 100, 100, 10_000)
	rapid.Check(t, func(t *rapid.T) {
		disk := wal.NewDisk(rapid.Uint64().Draw(t, "seed"))
		m := comparison{past: []model{{state: state(0, 0, 0)}}}
		m.open = func(o wal.Options) (wal.Log, wal.Stored, error) { return disk.Open(own, o) }
		m.reopen(t)
		actions := m.actions()
		actions["crash"] = func(t *rapid.T) {
			disk.Crash()
			if err := m.log.Save(state(9, 0, 0), nil, true); err == nil {
				t.Fatal("Save after a crash must fail")
			}
			m.reopen(t)
		}
		actions["fail"] = func(t *rapid.T) {
			disk.FailSync()
			for range 2 {
				if m.log.Sync() == nil || m.log.Save(nil, nil, true) == nil {
					t.Fatal("all calls after a failed sync must fail")
				}
			}
			disk.Crash()
			m.reopen(t)
		}
		t.Repeat(actions)
	})
}
