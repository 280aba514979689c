package raft

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// The body of a snapshot, which is the state, is sent to a peer in parts, a few at a
// time. The receiver answers each part with a receipt that says how many bytes it has.
// Lost parts are sent again. When the receiver has written and decoded the whole body, it
// passes the engine's message, which each part carries, to its own engine.

const (
	partBytes     = 256 << 10           // of the body in a part: 2 ms at 1 Gbit/s, which a heartbeat may have to wait
	partsOnTheWay = 16                  // 4 MiB in flight: enough for 1 Gbit/s with a round trip of 32 ms
	bodyBytesMax  = wal.SnapshotBodyMax // limit of a body, for writers, senders and readers
	messageMax    = 1 << 20             // bytes of the engine's message in a part, which holds the members
	reasonMax     = 512                 // bytes of the reason why a snapshot is refused
)

var errPart = fmt.Errorf("%w: not a part of a snapshot", ErrMessage)

// part is a part of a body. Its encoding is as follows; numbers are big-endian:
//
//	uint32  length of the engine's message, and the message
//	uint64  number of the transfer, which its sender has chosen
//	uint64  bytes of the body
//	uint64  offset of the data in it
//	uint32  CRC-32C of the data
//	data
type part struct {
	message  *pb.Message // MsgSnap with the head of the snapshot
	transfer uint64
	size     uint64
	offset   uint64
	data     []byte
}

const partHeadBytes = 3*8 + 4 // after the message

func (p *part) append(b, message []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(message)))
	b = append(b, message...)
	b = binary.BigEndian.AppendUint64(b, p.transfer)
	b = binary.BigEndian.AppendUint64(b, p.size)
	b = binary.BigEndian.AppendUint64(b, p.offset)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(p.data, castagnoli))
	return append(b, p.data...)
}

func readPart(b []byte) (p part, err error) {
	if len(b) < 4 {
		return p, errPart
	}
	n := binary.BigEndian.Uint32(b)
	if b = b[4:]; n > messageMax || uint64(len(b)) < uint64(n)+partHeadBytes || uint64(len(b)) > uint64(n)+partHeadBytes+partBytes {
		return p, errPart
	}
	text, b := b[:n], b[n:]
	p = part{nil, binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:]), b[partHeadBytes:]}
	switch {
	case p.size > bodyBytesMax || p.offset > p.size || uint64(len(p.data)) > p.size-p.offset:
		return p, errPart
	case len(p.data) == 0 && p.size > 0:
		return p, errPart
	case crc32.Checksum(p.data, castagnoli) != binary.BigEndian.Uint32(b[24:]):
		return p, fmt.Errorf("%w: its checksum is wrong", errPart)
	}
	if p.message, err = parseEngine(text, true); err != nil || p.message.GetType() != pb.MsgSnap {
		return p, fmt.Errorf("%w: it does not carry the message of a snapshot", errPart)
	}
	return p, nil
}

// receipt is the answer to a part.
type receipt struct {
	transfer uint64
	received uint64 // bytes of the body that the receiver has
	state    receiptState
	reason   string // of receiptRefused
}

type receiptState byte

const (
	receiptOpen     receiptState = iota // the receiver waits for more parts, or is decoding
	receiptComplete                     // the receiver has everything that the snapshot covers
	receiptUnknown                      // the receiver does not know this transfer
	receiptRefused                      // the receiver refuses the snapshot
	receiptStates
)

const receiptHeadBytes = 8 + 8 + 1

func (r *receipt) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, r.transfer)
	b = binary.BigEndian.AppendUint64(b, r.received)
	return append(append(b, byte(r.state)), r.reason[:min(len(r.reason), reasonMax)]...)
}

func readReceipt(b []byte) (r receipt, err error) {
	if len(b) < receiptHeadBytes || len(b) > receiptHeadBytes+reasonMax || receiptState(b[16]) >= receiptStates {
		return r, fmt.Errorf("%w: not a receipt", ErrMessage)
	}
	return receipt{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), receiptState(b[16]), string(b[receiptHeadBytes:])}, nil
}
