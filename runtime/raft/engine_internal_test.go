package raft

import (
	"testing"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// TestALeaderCopiesWhatIsProposed: the engine copies proposed data. proposeBatch relies on it.
func TestALeaderCopiesWhatIsProposed(t *testing.T) {
	storage := raft.NewMemoryStorage()
	if err := storage.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
		Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: []uint64{1}},
	}}); err != nil {
		t.Fatal(err)
	}
	n, err := raft.NewRawNode(&raft.Config{ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: storage, MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Campaign(); err != nil {
		t.Fatal(err)
	}
	for n.HasReady() { // the node saves its vote for itself
		r := n.Ready()
		if err := storage.Append(r.Entries); err != nil {
			t.Fatal(err)
		}
		n.Advance(r)
	}
	data := []byte("proposed")
	if err := n.Propose(data); err != nil {
		t.Fatal(err)
	}
	clear(data)
	entries := n.Ready().Entries
	if last := entries[len(entries)-1]; string(last.GetData()) != "proposed" {
		t.Errorf("the entry must keep the proposed data after the caller has cleared it, got %q", last.GetData())
	}
}
