package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// savelog DIR ENTRIES [BYTES]: creates a log with that many entries, and a snapshot after
// the second. The last entry has BYTES bytes.
func savelog(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: savelog DIR ENTRIES [BYTES]")
	}
	entries, err := strconv.ParseUint(args[1], 10, 64)
	ts.Check(err)
	l, _, err := wal.Open(ts.MkAbs(args[0]), wal.Identity{Topology: "bank", Group: "ledger\x1b[2J", Node: 0x1f, Name: "n1"}, wal.Options{Sync: wal.None})
	ts.Check(err)
	for i := range entries {
		e := &raftpb.Entry{Index: new(i + 1), Term: new(uint64(3)), Data: fmt.Appendf(nil, "update %d", i+1)}
		if i+1 == entries && len(args) == 3 {
			n, err := strconv.Atoi(args[2])
			ts.Check(err)
			e.Data = bytes.Repeat([]byte("x"), n)
		}
		ts.Check(l.Save(&raftpb.HardState{Term: new(uint64(3)), Vote: new(uint64(0x1f)), Commit: new(i)}, []*raftpb.Entry{e}, true))
		if i == 1 {
			s := &raftpb.Snapshot{Data: []byte("state"), Metadata: &raftpb.SnapshotMetadata{Index: new(i + 1), Term: new(uint64(3))}}
			ts.Check(l.SaveSnapshot(s))
		}
	}
	ts.Check(l.Close())
	disk, err := raft.OpenFolder(ts.MkAbs(args[0]), wal.Options{})
	ts.Check(err)
	ts.Check(disk.SetRecord(raft.Record{Topology: "bank", Group: "ledger\x1b[2J", Name: "n1", ID: 0x1f}))
	ts.Check(disk.Close())
}

// sized matches the offsets and lengths in a dump. They vary, because a log has a random
// token and so varying checksums.
var sized = regexp.MustCompile(`(?m)^(\S+ +)\d+( +)\d+ `)

// samedump FILE: compares stdout with a dump, without offsets and lengths.
func samedump(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: samedump FILE")
	}
	words := func(text string) []string {
		return strings.Fields(sized.ReplaceAllString(text, "$1 OFFSET LENGTH "))
	}
	got, want := ts.ReadFile("stdout"), ts.ReadFile(args[0])
	if !slices.Equal(words(got), words(want)) {
		ts.Fatalf("stdout and %s differ:\n%s", args[0], got)
	}
}

// recordAt returns the offset of record n of a segment.
func recordAt(b []byte, n int) (at int) {
	for range n {
		length := int(binary.LittleEndian.Uint32(b[at:]))
		at += 8 + (length+7)/8*8
	}
	return at
}

// flip FILE OFFSET: flips a bit of the byte at OFFSET, or of record N of a log if OFFSET
// is #N. FILE may be a pattern.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip FILE OFFSET")
	}
	names, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(names) != 1 {
		ts.Fatalf("files: %v", names)
	}
	number, isRecord := strings.CutPrefix(args[1], "#")
	at, err := strconv.Atoi(number)
	ts.Check(err)
	b, err := os.ReadFile(names[0])
	ts.Check(err)
	if isRecord {
		at = recordAt(b, at) + 8 // after the length of the record
	}
	b[at] ^= 1
	ts.Check(os.WriteFile(names[0], b, 0o600))
}
