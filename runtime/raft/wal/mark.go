package wal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"google.golang.org/protobuf/encoding/protowire"

	"go.etcd.io/raft/v3/raftpb"
)

// mark is a field in the record of a state. It helps to decide whether a missing sector is
// damage or the effect of a power failure: it is damage if the sector was synced. The chain
// of checksums is broken after a missing sector, so it cannot verify the records there. A
// mark has its own checksum. It contains the number of its record, and how many records
// before it were known to be synced when it was written. The engine preserves fields of a
// state that it does not know.
//
// Every save begins with a mark. Records are numbered from 0, without the heads of
// segments.
type mark struct {
	number  uint64 // of the record that contains the mark
	durable uint64 // records 0 to durable-1 were synced before this record was written
	strict  bool   // each segment is complete and synced before the next one gets its name
	token   token
}

func (m mark) String() string {
	return fmt.Sprintf("record %d, %d synced", m.number, m.durable)
}

// token is a random value that all marks of a log contain. It is generated for the first
// mark. A client cannot guess it, so data of an entry is never mistaken for a mark.
type token [8]byte

func newToken() (t token) {
	_, _ = rand.Read(t[:]) // never fails
	return t
}

const (
	markField  = 1000               // field number in a state; far from the numbers that raft may use
	markMin    = 8 + 1 + 1 + 4      // token, number, lag, checksum
	stateMax   = 3 * (1 + 10)       // three fields with a number each
	markMax    = 2 + 1 + 8 + 20 + 4 // tag, length, token, two numbers of any size, checksum
	markedMax  = stateMax + markMax // data of a record with a mark
	tokenBytes = len(token{})
)

// appendState appends a state in the encoding of the engine.
func appendState(b []byte, h hardState) []byte {
	for i, v := range [3]uint64{h.term, h.vote, h.commit} {
		b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(i+1), protowire.VarintType), v)
	}
	return b
}

// proto returns the state h with the mark.
func (m mark) proto(h hardState) *raftpb.HardState {
	lag := (m.number - m.durable) << 1
	if m.strict {
		lag |= 1
	}
	var numbers [2 * binary.MaxVarintLen64]byte
	n := binary.PutUvarint(numbers[:], m.number)
	n += binary.PutUvarint(numbers[n:], lag)

	b := appendState(make([]byte, 0, markedMax), h)
	head := len(b)
	b = protowire.AppendTag(b, markField, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(tokenBytes+n+crc32.Size))
	b = append(append(b, m.token[:]...), numbers[:n]...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	s := h.proto()
	s.ProtoReflect().SetUnknown(b[head:])
	return s
}

// parseMark parses the mark of the state b. The mark begins at b[head].
func parseMark(b []byte, head int) (m mark, ok bool) {
	number, kind, n := protowire.ConsumeTag(b[head:])
	if n != 2 || number != markField || kind != protowire.BytesType {
		return m, false
	}
	length, k, err := parseVarint(b[head+n:])
	rest := b[head+n+max(k, 0):]
	if err != nil || length != uint64(len(rest)) || len(rest) < markMin {
		return m, false
	}
	if crc32.Checksum(b[:len(b)-crc32.Size], castagnoli) != binary.LittleEndian.Uint32(b[len(b)-crc32.Size:]) {
		return m, false
	}
	rest = rest[copy(m.token[:], rest) : len(rest)-crc32.Size]
	if m.number, n, err = parseVarint(rest); err != nil {
		return m, false
	}
	lag, k, err := parseVarint(rest[n:])
	if err != nil || n+k != len(rest) || lag>>1 > m.number {
		return m, false
	}
	m.durable, m.strict = m.number-lag>>1, lag&1 != 0
	return m, true
}

// findProof searches b for a mark of the log which proves that the record with the given
// number was synced. It tries all offsets at which a record may begin, because the bytes
// before a record may be missing.
func findProof(b []byte, t token, number uint64) (at int, m mark, ok bool) {
	for ; at+wordBytes <= len(b); at += wordBytes {
		word := binary.LittleEndian.Uint64(b[at:])
		if word == 0 {
			continue
		}
		n, _, ok := frameLength(word)
		if !ok || n > recordOverhead+markedMax || n > int64(len(b)-at-wordBytes) {
			continue
		}
		rec, err := parseRecord(b[at+wordBytes : at+wordBytes+int(n)])
		if err != nil || rec.kind != typeState || !bytes.Contains(rec.data, t[:]) {
			continue
		}
		if s, ok := parseState(rec.data); ok && s.marked && s.mark.token == t && s.mark.durable > number {
			return at, s.mark, true
		}
	}
	return 0, mark{}, false
}

// markReader follows the numbers of records while a log is read.
type markReader struct {
	next   uint64 // number of the next record
	known  bool   // next is valid; false in a log whose beginning was removed, until the first mark
	marked bool   // a mark was read
	strict bool   // from the last mark
	token  token
}

// accept counts a valid record, and reports whether its mark has the expected number and
// token. position is the number of the record in its segment, from 0.
func (p *markReader) accept(kind recordType, s stateRecord, position int, first bool) (fits bool) {
	if position < 2 { // checksum and identity are not numbered
		return true
	}
	copied := kind == typeState && position == 2 && !first // the engine begins a segment with a copy of the last state
	copied = copied && (!s.marked || !p.known || s.mark.number < p.next)
	if s.marked {
		if p.marked && s.mark.token != p.token || !copied && p.known && s.mark.number != p.next {
			return false
		}
		p.marked, p.token, p.strict = true, s.mark.token, s.mark.strict
	}
	switch {
	case copied:
		return true
	case s.marked:
		p.next, p.known = s.mark.number, true
	}
	p.next++
	return true
}
