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
	snapshot, groupID, err := raft.Bootstrap([]raft.Member{{ID: 7, Name: "n1"}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	stored := wal.Stored{Snapshot: snapshot, State: raft.BootstrapState()}
	last := snapshot.GetMetadata().GetIndex()
	for range entries {
		last++
		stored.Entries = append(stored.Entries, &pb.Entry{Term: new(stored.State.GetTerm()), Index: new(last), Data: []byte{1}})
	}
	core, err := raft.NewCore(raft.CoreConfig{Name: "n1", ID: 7, GroupID: groupID, Stored: stored})
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

// TestAnAnswerToAnEarlierStart does not answer a read of this one, though both are the
// first of their start.
func TestAnAnswerToAnEarlierStart(t *testing.T) {
	snapshot, groupID, err := raft.Bootstrap([]raft.Member{{ID: 7, Name: "n1"}, {ID: 8, Name: "n2"}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	leader := uint64(8)
	// ask starts n1, has it read, and returns the key of its question.
	ask := func(nonce uint64) (core *raft.Core, key []byte) {
		core, err := raft.NewCore(raft.CoreConfig{Name: "n1", ID: 7, GroupID: groupID, Nonce: nonce, Stored: wal.Stored{Snapshot: snapshot, State: raft.BootstrapState()}})
		if err != nil {
			t.Fatal(err)
		}
		if err := core.Step(leader, &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(leader), To: new(core.ID()), Term: new(uint64(2)), Commit: new(uint64(1))}); err != nil {
			t.Fatal(err)
		}
		if err := core.Read(new(waiter)); err != nil {
			t.Fatal(err)
		}
		for core.HasEffects() {
			e := core.Effects()
			for _, m := range append(e.Early, e.Late...) {
				if m.GetType() == pb.MsgReadIndex {
					key = m.Entries[0].Data
				}
			}
			if err := core.Advance(); err != nil {
				t.Fatal(err)
			}
		}
		return core, key
	}
	answer := func(core *raft.Core, key []byte) (reads int) {
		if err := core.Step(leader, &pb.Message{
			Type: pb.MsgReadIndexResp.Enum(), From: new(leader), To: new(core.ID()), Term: new(uint64(2)), Index: new(uint64(1)), Entries: []*pb.Entry{{Data: key}},
		}); err != nil {
			t.Fatal(err)
		}
		for core.HasEffects() {
			e := core.Effects()
			reads += len(e.Reads)
			if err := core.Advance(); err != nil {
				t.Fatal(err)
			}
		}
		return reads
	}
	_, earlier := ask(1)
	core, key := ask(2)
	if n := answer(core, earlier); n != 0 {
		t.Error("it reads by the answer to a question that it has forgotten")
	}
	if n := answer(core, key); n != 1 {
		t.Errorf("%d reads when its own question is answered, want 1", n)
	}
}
