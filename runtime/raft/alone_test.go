package raft_test

import (
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

type waiter struct{}

func (*waiter) Done(fsm.Applied) {}

// TestReadAfterARestartAlone: the commit index need not be on the disk when an update
// is answered. A node alone that was killed then finds entries behind it, all of which
// a read has to wait for, even one that comes before anything else.
func TestReadAfterARestartAlone(t *testing.T) {
	const entries = 3
	snapshot, err := raft.Bootstrap(map[string]string{"n1": ""}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stored := wal.Stored{Snapshot: snapshot, State: raft.BootstrapState()}
	last := snapshot.GetMetadata().GetIndex()
	for range entries {
		last++
		stored.Entries = append(stored.Entries, &pb.Entry{Term: new(stored.State.GetTerm()), Index: new(last), Data: []byte{1}})
	}
	core, err := raft.NewCore(raft.CoreConfig{Name: "n1", Stored: stored})
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Campaign(); err != nil {
		t.Fatal(err)
	}
	var applied uint64
	read, reads := new(waiter), 0
	for range 10 { // it may be asked at any time of its election
		if err := core.Read(read); err != nil {
			t.Fatal(err)
		}
		if !core.HasEffects() {
			break
		}
		e := core.Effects()
		for _, o := range e.Apply {
			applied = o.Index
		}
		if reads += len(e.Reads); len(e.Reads) > 0 && applied < last {
			t.Fatalf("it may read when %d of %d is applied", applied, last)
		}
		if err := core.Advance(); err != nil {
			t.Fatal(err)
		}
	}
	if reads == 0 {
		t.Error("it may never read")
	}
}
