package wal_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// A node saves the entries that its leader sends, restarts, and continues with them.
func ExampleOpen() {
	parent, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "ledger")
	id := wal.Identity{Topology: "bank", Group: "ledger", Node: 1, Name: "n1"}

	l, stored, err := wal.Open(dir, id, wal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("new log:", stored.Fresh)
	state := &raftpb.HardState{Term: new(uint64(1)), Vote: new(uint64(1)), Commit: new(uint64(1))}
	entries := []*raftpb.Entry{
		{Term: new(uint64(1)), Index: new(uint64(1)), Data: []byte("deposit 10")},
		{Term: new(uint64(1)), Index: new(uint64(2)), Data: []byte("deposit 20")},
	}
	err = l.Save(state, entries, true) // durable when it returns
	if err := errors.Join(err, l.Close()); err != nil {
		log.Fatal(err)
	}

	l, stored, err = wal.Open(dir, id, wal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	fmt.Println("committed:", stored.State.GetCommit())
	for _, e := range stored.Entries {
		fmt.Printf("entry %d: %s\n", e.GetIndex(), e.GetData())
	}
	// Output:
	// new log: true
	// committed: 1
	// entry 1: deposit 10
	// entry 2: deposit 20
}

// A snapshot replaces the entries before it. Verify reads a log and changes nothing.
func ExampleVerify() {
	parent, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "ledger")

	l, _, err := wal.Open(dir, wal.Identity{Topology: "bank", Group: "ledger", Node: 1, Name: "n1"}, wal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var entries []*raftpb.Entry
	for i := range uint64(10) {
		entries = append(entries, &raftpb.Entry{Term: new(uint64(1)), Index: new(i + 1), Data: []byte("deposit 10")})
	}
	snapshot := &raftpb.Snapshot{
		Data:     []byte("balance 80"),
		Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(8)), Term: new(uint64(1)), ConfState: &raftpb.ConfState{Voters: []uint64{1}}},
	}
	err = l.Save(&raftpb.HardState{Term: new(uint64(1)), Commit: new(uint64(8))}, entries, true)
	if err := errors.Join(err, l.SaveSnapshot(snapshot), l.Close()); err != nil {
		log.Fatal(err)
	}

	report, err := wal.Verify(dir)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("log of", report.Identity)
	fmt.Printf("snapshot at %d, then entries %d to %d\n", report.Snapshot, report.First, report.Last)
	// Output:
	// log of n1 (group "ledger", topology "bank")
	// snapshot at 8, then entries 9 to 10
}

// A simulated disk loses unsynced data in a crash, so a test can check what a node keeps.
func ExampleDisk() {
	disk := wal.NewDisk(1) // a seed
	id := wal.Identity{Topology: "bank", Group: "ledger", Node: 1}
	l, _, err := disk.Open(id, wal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	state := &raftpb.HardState{Term: new(uint64(3)), Vote: new(uint64(2))}
	if err := l.Save(state, nil, true); err != nil {
		log.Fatal(err)
	}
	disk.FailSync()
	err = l.Save(&raftpb.HardState{Term: new(uint64(4)), Vote: new(uint64(1))}, nil, true)
	fmt.Println("failed:", errors.Is(err, wal.ErrFailed))
	disk.Crash()

	_, stored, err := disk.Open(id, wal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("term at least 3:", stored.State.GetTerm() >= 3)
	// Output:
	// failed: true
	// term at least 3: true
}
