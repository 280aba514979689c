package wal_test

import (
	"path/filepath"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft/wal"
)

var own = wal.Identity{Topology: "bank", Group: "ledger", Node: 1}

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

func TestWhatWasSavedIsThere(t *testing.T) {
	for name, open := range map[string]func() (wal.Log, wal.Stored, error){
		"files": opener(filepath.Join(t.TempDir(), "log")),
		"disk": func() func() (wal.Log, wal.Stored, error) {
			d := wal.NewDisk(1)
			return func() (wal.Log, wal.Stored, error) { return d.Open(own, wal.Options{}) }
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			l, s, err := open()
			if err != nil || !s.Fresh || s.Snapshot != nil || len(s.Entries) > 0 {
				t.Fatal(s, err)
			}
			if err := l.Save(state(1, 1, 0), []*raftpb.Entry{entry(1, 1, ""), entry(2, 1, "two")}, true); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l, s, err = open()
			if err != nil || s.Fresh || s.State.GetTerm() != 1 || len(s.Entries) != 2 || string(s.Entries[1].GetData()) != "two" {
				t.Fatal(s, err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func opener(dir string) func() (wal.Log, wal.Stored, error) {
	return func() (wal.Log, wal.Stored, error) { return wal.Open(dir, own, wal.Options{}) }
}
