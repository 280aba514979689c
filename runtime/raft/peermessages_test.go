package raft

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestMessagesOfRastHoldAll converts messages of the engine to peer messages and back, without
// loss.
func TestMessagesOfRastHoldAll(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	number := rapid.Uint64()
	text := rapid.SliceOfN(rapid.Byte(), 1, 8)
	entries := func(t *rapid.T) (list []*pb.Entry) {
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			list = append(list, &pb.Entry{
				Index: new(number.Draw(t, "index")), Term: new(number.Draw(t, "term")),
				Type: pb.EntryConfChangeV2.Enum(), Data: text.Draw(t, "data"),
			})
		}
		return list
	}
	n := func(t *rapid.T, name string) *uint64 { return new(number.Draw(t, name)) }
	yes := func(t *rapid.T, name string) *bool { return new(rapid.Bool().Draw(t, name)) }
	kinds := map[pb.MessageType]func(*rapid.T, *pb.Message){
		pb.MsgVote: func(t *rapid.T, m *pb.Message) {
			m.Index, m.LogTerm, m.Context = n(t, "i"), n(t, "l"), text.Draw(t, "c")
		},
		pb.MsgPreVote:     func(t *rapid.T, m *pb.Message) { m.Index, m.LogTerm = n(t, "i"), n(t, "l") },
		pb.MsgVoteResp:    func(t *rapid.T, m *pb.Message) { m.Reject = yes(t, "r") },
		pb.MsgPreVoteResp: func(t *rapid.T, m *pb.Message) { m.Reject = yes(t, "r") },
		pb.MsgApp: func(t *rapid.T, m *pb.Message) {
			m.Index, m.LogTerm, m.Commit, m.Entries = n(t, "i"), n(t, "l"), n(t, "c"), entries(t)
		},
		pb.MsgHeartbeat:     func(t *rapid.T, m *pb.Message) { m.Commit, m.Context = n(t, "c"), text.Draw(t, "x") },
		pb.MsgTimeoutNow:    func(*rapid.T, *pb.Message) {},
		pb.MsgReadIndexResp: func(t *rapid.T, m *pb.Message) { m.Index, m.Entries = n(t, "i"), entries(t) },
		pb.MsgAppResp: func(t *rapid.T, m *pb.Message) {
			m.Index, m.Reject, m.RejectHint, m.LogTerm = n(t, "i"), yes(t, "r"), n(t, "h"), n(t, "l")
		},
		pb.MsgHeartbeatResp:  func(t *rapid.T, m *pb.Message) { m.Context = text.Draw(t, "x") },
		pb.MsgProp:           func(t *rapid.T, m *pb.Message) { m.Entries = entries(t) },
		pb.MsgReadIndex:      func(t *rapid.T, m *pb.Message) { m.Entries = entries(t) },
		pb.MsgTransferLeader: func(*rapid.T, *pb.Message) {},
	}
	for kind, fill := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := &pb.Message{Type: kind.Enum(), From: new(newID()), To: new(newID()), Term: n(t, "term")}
				fill(t, m)
				b, err := proto.MarshalOptions{}.MarshalAppend(envelope{kindRaft, 77, m.GetFrom()}.append(nil), m)
				if err != nil {
					t.Fatal(err)
				}
				from, again, err := untyped(typed("a", "b", b))
				if err != nil || from != "a" {
					t.Fatal(from, err)
				}
				e, payload, err := openEnvelope(again)
				back := new(pb.Message)
				if err != nil || e.groupID != 77 || e.id != m.GetFrom() || proto.Unmarshal(payload, back) != nil {
					t.Fatal(e, err)
				}
				if d := cmp.Diff(plain(m), plain(back), protocmp.Transform()); d != "" {
					t.Fatal(d)
				}
			})
		})
	}
}

// TestTheOtherMessagesHoldAll converts introductions, notices and receipts to peer messages and back.
func TestTheOtherMessagesHoldAll(t *testing.T) {
	for _, kind := range []kind{kindIntroduction, kindNotice, kindReceipt} {
		b := append(envelope{kind, 7, 8}.append(nil), "text"...)
		if from, back, err := untyped(typed("a", "b", b)); err != nil || from != "a" || !bytes.Equal(back, b) {
			t.Errorf("kind %d: %q, %v", kind, back, err)
		}
	}
}

// TestPartsOfRastHoldAll converts parts of snapshots to peer messages and back.
func TestPartsOfRastHoldAll(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string) *uint64 { return new(rapid.Uint64().Draw(t, name)) }
		text := rapid.SliceOfN(rapid.Byte(), 1, 8)
		m := &pb.Message{Type: pb.MsgSnap.Enum(), From: new(newID()), To: new(newID()), Term: n("term")}
		m.Snapshot = &pb.Snapshot{Data: text.Draw(t, "head"), Metadata: &pb.SnapshotMetadata{
			Index: n("index"), Term: n("its term"), ConfState: &pb.ConfState{Voters: []uint64{*n("voter")}, AutoLeave: new(rapid.Bool().Draw(t, "leave"))},
		}}
		data := text.Draw(t, "data")
		p := part{transfer: *n("transfer"), size: 8 + rapid.Uint64Range(0, bodyBytesMax-8).Draw(t, "size"), data: data}
		p.offset = rapid.Uint64Range(0, p.size-8).Draw(t, "offset")
		message, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		b := p.append(envelope{kindPart, 77, m.GetFrom()}.append(nil), message)
		from, back, err := untyped(typed("a", "b", b))
		if err != nil || from != "a" || !bytes.Equal(b[:envelopeBytes], back[:envelopeBytes]) {
			t.Fatal(from, err)
		}
		got, err := readPart(back[envelopeBytes:])
		if err != nil || got.transfer != p.transfer || got.size != p.size || got.offset != p.offset || !bytes.Equal(got.data, data) {
			t.Fatalf("%+v, %v", got, err)
		}
		if d := cmp.Diff(m, got.message, protocmp.Transform()); d != "" {
			t.Fatal(d)
		}
	})
}

// plain removes zero values from m, because the wire does not distinguish them from missing values.
func plain(m *pb.Message) *pb.Message {
	number := func(v **uint64) {
		if *v != nil && **v == 0 {
			*v = nil
		}
	}
	for _, v := range []**uint64{&m.Index, &m.LogTerm, &m.Commit, &m.RejectHint, &m.Term} {
		number(v)
	}
	if m.Reject != nil && !*m.Reject {
		m.Reject = nil
	}
	return m
}
