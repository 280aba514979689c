package raft

import (
	"math"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/transport"
)

// TestEntryOverhead: the overheads that windowBytesMax assumes hold for the largest numbers.
func TestEntryOverhead(t *testing.T) {
	most := new(uint64(math.MaxUint64))
	m := &pb.Message{
		Type: pb.MsgReadIndexResp.Enum(), To: most, From: most, Term: most, LogTerm: most, Index: most, Commit: most, Vote: most,
		Reject: new(true), RejectHint: most,
	}
	head := proto.Size(m)
	if head > messageHeadBytes {
		t.Errorf("a message without entries must have at most %d bytes, got %d", messageHeadBytes, head)
	}
	for _, size := range []int{0, 1, 127, 128, 1 << 14, 1 << 21, entryBytesMax} {
		m.Entries = []*pb.Entry{{Type: pb.EntryConfChangeV2.Enum(), Term: most, Index: most, Data: make([]byte, size)}}
		if n := proto.Size(m) - head; n > size+entryOverhead {
			t.Errorf("an entry of %d bytes must take at most %d more, got %d", size, entryOverhead, n-size)
		}
	}
}

// TestClassesOfMessages: heartbeats and votes have a higher class than large appends, and all appends
// have the same class, so that they stay in order.
func TestClassesOfMessages(t *testing.T) {
	want := map[pb.MessageType]transport.Class{
		pb.MsgHeartbeat: transport.Urgent, pb.MsgHeartbeatResp: transport.Urgent,
		pb.MsgVote: transport.Urgent, pb.MsgVoteResp: transport.Urgent, pb.MsgPreVote: transport.Urgent, pb.MsgPreVoteResp: transport.Urgent,
		pb.MsgSnap: transport.Bulk,
	}
	for number, name := range pb.MessageType_name {
		if got := classOf(pb.MessageType(number)); got != want[pb.MessageType(number)] {
			t.Errorf("%s is of class %d, want %d", name, got, want[pb.MessageType(number)])
		}
	}
}

// TestPassedBytes: commands count from the time they are forwarded to the leader until they are
// answered or must be proposed again.
func TestPassedBytes(t *testing.T) {
	c := &Core{id: 1, leader: 2, pending: newPending(64, 1, 1)}
	p, f := &c.pending, &c.clientUpdates
	p.client = 7
	check := func(when string, pending, foreign int, limit bool) {
		t.Helper()
		if got := p.forwardedBytes(); got != pending {
			t.Errorf("%s: %d bytes of commands, want %d", when, got, pending)
		}
		if got := f.forwardedBytes(); got != foreign {
			t.Errorf("%s: %d bytes of updates, want %d", when, got, foreign)
		}
		if got := c.forwardLimitReached(); got != limit {
			t.Errorf("%s: the limit is reached: %t, want %t", when, got, limit)
		}
	}
	const half = passBytesMax / 2
	for range 2 {
		p.add(Update, make([]byte, half), &silent{})
	}
	f.add(3, 1, 1, make([]byte, half), &silent{})
	check("nothing was proposed", 0, 0, false)
	p.markProposed(2, 1, 1)
	f.markProposed(1, 1)
	check("one command and the update", half, half, true)
	c.leader = 1
	if c.forwardLimitReached() {
		t.Error("the limit must not apply to a leader")
	}
	c.leader = 2
	f.repropose()
	check("the update again", half, 0, false)
	f.markProposed(1, 1)
	p.answer(1, fsm.Applied{})
	check("the command was answered", 0, half, false)
	p.markProposed(3, 1, 1)
	check("the other command", half, half, true)
	p.repropose()
	check("the command again", 0, half, false)
	f.answer(3, 1, fsm.Applied{})
	check("the update was answered", 0, 0, false)
}

type silent struct{}

func (*silent) Done(fsm.Applied) {}
