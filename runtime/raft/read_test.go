package raft_test

import (
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

type waiter struct{}

func (*waiter) Done(fsm.Applied) {}

// TestReadAfterARestartAlone: a read on a group of one node waits until all entries in its log
// are applied. The commit index may not be on the disk when an update is answered. If the node
// is killed then, its log has entries after the stored commit index, which were acknowledged.
func TestReadAfterARestartAlone(t *testing.T) {
	for what, read := range map[string]func(*raft.Core, raft.Waiter) error{"Read": (*raft.Core).Read, "ReadLease": (*raft.Core).ReadLease} {
		t.Run(what, func(t *testing.T) { readAfterARestartAlone(t, read) })
	}
}

func readAfterARestartAlone(t *testing.T, begin func(*raft.Core, raft.Waiter) error) {
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
	core, err := raft.NewCore(raft.CoreConfig{
		Name: "n1", ID: 7, GroupID: groupID, Stored: stored, Uptime: func() time.Duration { return 0 }, LeaseTime: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Campaign(); err != nil {
		t.Fatal(err)
	}
	var applied uint64
	read, reads := new(waiter), 0
	for range 10 { // the read may come at any time of the election
		if err := begin(core, read); err != nil {
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
			t.Fatalf("a read must wait until entry %d is applied, and was allowed at %d", last, applied)
		}
		if err := core.Advance(); err != nil {
			t.Fatal(err)
		}
	}
	if reads == 0 {
		t.Error("the read must be allowed in the end")
	}
}

// TestAnAnswerToAnEarlierStart: the answer to a read from before a restart does not answer a read
// after the restart, although both are the first read of the process.
func TestAnAnswerToAnEarlierStart(t *testing.T) {
	snapshot, groupID, err := raft.Bootstrap([]raft.Member{{ID: 7, Name: "n1"}, {ID: 8, Name: "n2"}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	leader := uint64(8)
	// ask starts n1 and a read on it, and returns the key of the question that n1 sends.
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
		t.Error("the answer to a question from before the restart must not allow a read")
	}
	if n := answer(core, key); n != 1 {
		t.Errorf("the answer to the own question allows %d reads, want 1", n)
	}
}
