package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// savelog DIR ENTRIES: makes a log with so many entries, and a snapshot after the
// second.
func savelog(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: savelog DIR ENTRIES")
	}
	entries, err := strconv.ParseUint(args[1], 10, 64)
	ts.Check(err)
	l, _, err := wal.Open(ts.MkAbs(args[0]), wal.Identity{Topology: "bank", Group: "ledger\x1b[2J", Node: 0x1f, Name: "n1"}, wal.Options{Sync: wal.None})
	ts.Check(err)
	for i := range entries {
		e := &raftpb.Entry{Index: new(i + 1), Term: new(uint64(3)), Data: fmt.Appendf(nil, "update %d", i+1)}
		ts.Check(l.Save(&raftpb.HardState{Term: new(uint64(3)), Vote: new(uint64(0x1f)), Commit: new(i)}, []*raftpb.Entry{e}, true))
		if i == 1 {
			s := &raftpb.Snapshot{Data: []byte("state"), Metadata: &raftpb.SnapshotMetadata{Index: new(i + 1), Term: new(uint64(3))}}
			ts.Check(l.SaveSnapshot(s))
		}
	}
	ts.Check(l.Close())
}

// flip FILE OFFSET: flips a bit of the byte at OFFSET. FILE may be a pattern.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip FILE OFFSET")
	}
	names, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(names) != 1 {
		ts.Fatalf("files: %v", names)
	}
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	b, err := os.ReadFile(names[0])
	ts.Check(err)
	b[at] ^= 1
	ts.Check(os.WriteFile(names[0], b, 0o600))
}
