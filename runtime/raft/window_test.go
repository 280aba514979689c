package raft

import (
	"math"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/transport"
)

// TestEntryOverhead: what windowBytesMax relies on holds for the largest numbers.
func TestEntryOverhead(t *testing.T) {
	most := new(uint64(math.MaxUint64))
	m := &pb.Message{
		Type: pb.MsgReadIndexResp.Enum(), To: most, From: most, Term: most, LogTerm: most, Index: most, Commit: most, Vote: most,
		Reject: new(true), RejectHint: most,
	}
	head := proto.Size(m)
	if head > messageHeadBytes {
		t.Errorf("a message without entries has %d bytes, more than %d", head, messageHeadBytes)
	}
	for _, size := range []int{0, 1, 127, 128, 1 << 14, 1 << 21, entryBytesMax} {
		m.Entries = []*pb.Entry{{Type: pb.EntryConfChangeV2.Enum(), Term: most, Index: most, Data: make([]byte, size)}}
		if n := proto.Size(m) - head; n > size+entryOverhead {
			t.Errorf("an entry of %d bytes takes %d more, at most %d are expected", size, n-size, entryOverhead)
		}
	}
}

// TestClassesOfMessages: heartbeats and votes overtake an append of many bytes, and
// nothing overtakes an append that its leader sent before another.
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
