package raft

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/internal/test/memdir"
)

// FuzzMessages reads any bytes as each kind of message, and as the records on the disk.
func FuzzMessages(f *testing.F) {
	members := []Member{{ID: MemberID("n1"), Name: "n1", Address: "127.0.0.1:1"}}
	engine, err := proto.Marshal(&pb.Message{Type: pb.MsgSnap.Enum(), Snapshot: &pb.Snapshot{}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(engine)
	f.Add((&part{transfer: 1, size: 10, offset: 2, data: []byte("abc")}).append(nil, engine))
	f.Add((&receipt{7, 8, receiptRefused, "full"}).append(nil))
	f.Add((&introduction{question: 1, joins: true, firstMembers: members}).append(nil))
	f.Add(notice{}.append(nil))
	f.Add(appendHead(nil, head{members: members, salt: []byte("salt")}))
	f.Add(appendMembers(nil, members))
	f.Add(appendRecord(nil, Record{ID: 1}))
	f.Add(append(envelope{kindRaft, 1, 2}.append(nil), engine...))
	f.Add([]byte(`{"Do":"change","Changes":[{"Name":"n1","Address":"127.0.0.1:1"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		allocated.Within(t, 8<<10+200*len(b), func() { // 8 KiB for the errors of 12 decoders
			_, _ = parseEngine(b, true)
			_, _ = parseEngine(b, false)
			_, _ = readPart(b)
			_, _ = readReceipt(b)
			_, _ = readIntroduction(b)
			_, _ = readNotice(b)
			_, _, _ = readSnapshot(b)
			_, _ = readRecord(b)
			_, _ = parseCommand(string(b))
			_ = typed("n1", "n2", b)
			_ = changedBy(&pb.Entry{Type: pb.EntryConfChangeV2.Enum(), Data: b})
			m := new(pb.Message)
			m.ProtoReflect().SetUnknown(b)
			_, _ = takeTimes(m)
			if list, err := readMembers(b); err == nil {
				if again, err := readMembers(appendMembers(nil, list)); err != nil || len(again) != len(list) {
					t.Errorf("%+v is read as %+v: %v", list, again, err)
				}
			}
		})
	})
}

// backupOf returns a backup with valid checksums, which the fuzzer does not find. If length is not 0,
// the frame after the state announces it.
func backupOf(head, state, entry []byte, length uint32) []byte {
	var b bytes.Buffer
	b.WriteString(backupTitle)
	w := &frames{&b, crc32.New(castagnoli)}
	put := func(data []byte) { _ = w.put(data) } // a buffer does not fail
	put(head)
	if len(state) > 0 { // a frame without data ends a list
		put(state)
	}
	put(nil)
	at := b.Len()
	if len(entry) > 0 {
		put(entry)
	}
	put(nil)
	if length > 0 {
		binary.LittleEndian.PutUint32(b.Bytes()[at:], length)
	}
	return b.Bytes()
}

// FuzzBackup opens any file as a backup.
func FuzzBackup(f *testing.F) {
	path := filepath.Join(memdir.New(f), "backup")
	i := &Image{Topology: "t", Group: "g", Node: "n1", GroupID: 1, Index: 1, Term: 1, Last: 1, LastTerm: 1}
	head := i.appendHead(nil)
	f.Add([]byte{}, []byte{}, []byte{}, uint32(0))
	f.Add(head, []byte{}, []byte{}, uint32(0))
	f.Add(head, []byte("state"), []byte{}, uint32(backupMax))
	f.Add(head, []byte("state"), []byte("\x10\x01\x18\x02"), uint32(0))
	f.Fuzz(func(t *testing.T, head, state, entry []byte, length uint32) {
		file := backupOf(head, state, entry, length)
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		allocated.Within(t, 4*backupChunk+50*len(file), func() { // buffers of backupChunk, for each of three passes
			if i, err := OpenBackup(path); err == nil {
				_ = i.Close()
			}
		})
	})
}
