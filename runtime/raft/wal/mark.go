package wal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// Behind a missing sector the chain of checksums is broken, and so a record there
// cannot be checked by it. Whether the missing sector was synced decides between
// damage and the trace of a power failure. So a record of a state carries a mark: its
// own number, how many records before it were known to be synced when it was written,
// and a checksum of its own. The engine keeps fields of a state that it does not know.
//
// Every save begins with a mark. Records are numbered from 0, without the heads of
// segments.
type mark struct {
	number  uint64 // of the record that carries it
	durable uint64 // records 0 to durable-1 were synced before this one was written
	strict  bool   // each segment is complete and synced before the next one has its name
	token   token
}

func (m mark) String() string {
	return fmt.Sprintf("record %d, %d synced", m.number, m.durable)
}

// token is drawn at random when a log gets its first mark, and is in all of them. The
// data of an entry, which a client has made, cannot be taken for a mark.
type token [8]byte

func newToken() (t token) {
	_, _ = rand.Read(t[:]) // never fails
	return t
}

const (
	markField  = 1000               // of a state; far from the fields that raft may add
	markMin    = 8 + 1 + 1 + 4      // token, number, distance to durable, checksum
	stateMax   = 3 * (1 + 10)       // three fields that are numbers
	markMax    = 2 + 1 + 8 + 20 + 4 // tag and length, and numbers of any size
	markedMax  = stateMax + markMax // the data of a record with a mark
	lagMax     = math.MaxUint64 >> 1
	tokenBytes = len(token{})
)

// appendState appends a state as the engine writes it.
func appendState(b []byte, h hardState) []byte {
	for i, v := range [3]uint64{h.term, h.vote, h.commit} {
		b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(i+1), protowire.VarintType), v)
	}
	return b
}

// proto is the state with the mark in it.
func (m mark) proto(h hardState) *raftpb.HardState {
	durable := m.durable
	if bug.On(bug.MarkTooNew) {
		durable = m.number
	}
	lag := (m.number - durable) << 1
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

// parseMark parses the mark of a state, which begins at b[head].
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

// proof returns the place of a mark of the log in b which says that a record of the
// number was synced. It looks at all places where a record may begin: what is before
// it may be missing.
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

// place follows the numbers of records while a log is read.
type markReader struct {
	next   uint64 // number of the next record
	known  bool   // next is; false in a log whose beginning was removed, up to a mark
	marked bool   // a mark was seen
	strict bool   // as the last mark says
	token  token
}

// pass takes a record that is right. In a segment it is the record at position, from 0.
func (p *markReader) accept(kind recordType, s stateRecord, position int, first bool) (fits bool) {
	if position < 2 { // checksum and identity
		return true
	}
	copied := kind == typeState && position == 2 && !first // the engine begins a segment with the last state
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
