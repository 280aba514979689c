package raft

import (
	"bytes"
	"errors"
	"io"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// TestHostileParts: invalid parts and receipts of snapshots are refused.
func TestHostileParts(t *testing.T) {
	message, err := proto.Marshal(&pb.Message{Type: pb.MsgSnap.Enum(), Snapshot: &pb.Snapshot{}})
	if err != nil {
		t.Fatal(err)
	}
	good := (&part{transfer: 1, size: 10, offset: 2, data: []byte("abc")}).append(nil, message)
	if _, err := readPart(good); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 0xff
		if p, err := readPart(b); err == nil && (p.size > bodyBytesMax || p.offset+uint64(len(p.data)) > p.size) {
			t.Errorf("with byte %d changed the part must be refused or stay in its bounds, got %+v", i, p)
		}
	}
	vote, err := proto.Marshal(&pb.Message{Type: pb.MsgVote.Enum()})
	if err != nil {
		t.Fatal(err)
	}
	x := []byte("x")
	for what, b := range map[string][]byte{
		"nothing":             nil,
		"no data":             (&part{size: 1}).append(nil, message),
		"a truncated part":    good[:len(good)-1],
		"much data":           (&part{size: 1 << 30, data: make([]byte, partBytes+1)}).append(nil, message),
		"a large body":        (&part{size: bodyBytesMax + 1, data: x}).append(nil, message),
		"too much":            (&part{size: 2, offset: 1, data: []byte("xy")}).append(nil, message),
		"a large offset":      (&part{size: 1, offset: 1 << 63, data: x}).append(nil, message),
		"a vote":              (&part{size: 1, data: x}).append(nil, vote),
		"no message":          (&part{size: 1, data: x}).append(nil, x),
		"a very long message": (&part{size: 1, data: x}).append(nil, make([]byte, messageMax+1)),
	} {
		if _, err := readPart(b); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, b := range [][]byte{nil, make([]byte, receiptHeadBytes-1), append(make([]byte, 16), byte(receiptStates)), make([]byte, receiptHeadBytes+reasonMax+1)} {
		if _, err := readReceipt(b); !errors.Is(err, ErrMessage) {
			t.Errorf("receipt %.40q: %v", b, err)
		}
	}
	r := receipt{7, 8, receiptRefused, string(make([]byte, 2*reasonMax))}
	if back, err := readReceipt(r.append(nil)); err != nil || back.received != 8 || len(back.reason) != reasonMax {
		t.Errorf("%+v, %v", back, err)
	}
}

// TestATransferEnds: a transfer ends if the receiver does not answer, or refuses it.
func TestATransferEnds(t *testing.T) {
	s := &bodySender{transfer: 1, bytes: partBytes, body: io.NopCloser(bytes.NewReader(make([]byte, 100))), size: 100}
	sends := 0
	for tick := int64(0); ; tick++ {
		if tick > 1000 {
			t.Fatal("the transfer must end without an answer")
		}
		if err := s.sendParts(func(*part) { sends++ }); err != nil {
			t.Fatal(err)
		}
		if s.resendOverdue(tick, 10) != nil {
			break
		}
	}
	if sends != 1+partTries {
		t.Errorf("the part must be sent %d times, got %d", 1+partTries, sends)
	}
	if err := s.takeReceipt(&receipt{transfer: 1, state: receiptRefused, reason: "no room on the disk"}, 0); err == nil {
		t.Error("a refusal must be an error")
	}
	if err := s.takeReceipt(&receipt{transfer: 2, state: receiptRefused}, 0); err != nil {
		t.Errorf("a receipt of another transfer: %v", err)
	}
}

// TestATransferIsResumed: a transfer continues after the bytes that the receiver already has.
func TestATransferIsResumed(t *testing.T) {
	for _, came := range []uint64{1, 9, 10, 55, 99, 100} {
		body := make([]byte, 100)
		for i := range body {
			body[i] = byte(i)
		}
		s := &bodySender{transfer: 1, bytes: 10, body: io.NopCloser(bytes.NewReader(body)), size: 100}
		if err := s.takeReceipt(&receipt{transfer: 1, received: came}, 0); err != nil {
			t.Fatal(err)
		}
		var got []byte
		for range 10 {
			if err := s.sendParts(func(p *part) {
				if p.offset == came+uint64(len(got)) {
					got = append(got, p.data...)
				}
			}); err != nil {
				t.Fatal(err)
			}
			if err := s.takeReceipt(&receipt{transfer: 1, received: came + uint64(len(got))}, 0); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, body[came:]) || len(s.unacknowledged) == 0 {
			t.Errorf("after byte %d the rest must be sent and wait for the final receipt, got %d bytes and %d waiting parts", came, len(got), len(s.unacknowledged))
		}
		if err := s.takeReceipt(&receipt{transfer: 1, received: 100, state: receiptComplete}, 0); err != nil || !s.complete || len(s.unacknowledged) > 0 {
			t.Errorf("the transfer must be complete, got %v and %d waiting parts", err, len(s.unacknowledged))
		}
	}
}

// TestAReceiverThatHasLess: if a receipt after a resend reports fewer bytes than before, the
// receiver has restarted, and the transfer starts again. Before a resend, such a receipt is only
// late.
func TestAReceiverThatHasLess(t *testing.T) {
	s := &bodySender{transfer: 1, bytes: 10, body: io.NopCloser(bytes.NewReader(make([]byte, 100))), size: 100}
	if err := errors.Join(s.sendParts(func(*part) {}), s.takeReceipt(&receipt{transfer: 1, received: 50}, 3)); err != nil {
		t.Fatal(err)
	}
	if err := s.takeReceipt(&receipt{transfer: 1, received: 10}, 5); err != nil || s.progressTick != 3 || s.acknowledged != 50 {
		t.Errorf("a late receipt must be ignored, got %v, progress at tick %d, %d bytes", err, s.progressTick, s.acknowledged)
	}
	if err := s.resendOverdue(13, 10); err != nil || s.tries != 1 {
		t.Fatal(err, s.tries)
	}
	if err := s.takeReceipt(&receipt{transfer: 1, received: 10}, 14); !errors.Is(err, errReceiverLost) {
		t.Errorf("the transfer must start again, got %v", err)
	}
}
