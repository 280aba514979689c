package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
)

// A frame is a length word and a record, padded to a multiple of wordBytes, so that no
// word crosses the boundary of a sector. The reader accepts exactly one encoding for each
// length, padding, record and field. So it also detects changes in the bytes that no
// checksum covers.
const (
	wordBytes   = 8
	sectorBytes = 512      // the smallest unit that a disk writes atomically
	recordMin   = 4        // type and checksum
	recordMax   = 64 << 20 // more than a frame of the transport
)

// recordType is the type of a record. The numbers are etcd's.
type recordType byte

const (
	typeMetadata = recordType(etcdwal.MetadataType)
	typeEntry    = recordType(etcdwal.EntryType)
	typeState    = recordType(etcdwal.StateType)
	typeChecksum = recordType(etcdwal.CrcType)
	typeSnapshot = recordType(etcdwal.SnapshotType)
)

func (t recordType) String() string {
	switch t {
	case typeMetadata:
		return "identity"
	case typeEntry:
		return "entry"
	case typeState:
		return "state"
	case typeChecksum:
		return "checksum"
	case typeSnapshot:
		return "snapshot"
	}
	return fmt.Sprintf("type %d", byte(t))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frameLength returns the lengths of the record and of the padding after a length word. It
// returns ok = false for an invalid word.
func frameLength(word uint64) (record, padding int64, ok bool) {
	record = int64(word & (1<<56 - 1))
	if record < recordMin || record > recordMax {
		return 0, 0, false
	}
	padding = -record & (wordBytes - 1)
	want := uint64(0)
	if padding != 0 {
		want = 0x80 | uint64(padding)
	}
	return record, padding, word>>56 == want
}

// record is a parsed record. The reader compares its data with its checksum.
type record struct {
	kind recordType
	crc  uint32
	data []byte
}

// parseRecord parses a record.
func parseRecord(b []byte) (record, error) {
	h, err := parseHeader(b)
	if err != nil {
		return record{}, err
	}
	if h.length+h.data != len(b) {
		return record{}, errHeader
	}
	return record{h.kind, h.crc, b[h.length:]}, nil
}

// header is the part of a record before its data.
type header struct {
	kind   recordType
	crc    uint32
	length int // of the header
	data   int // length of the data
}

var (
	errHeader = fmt.Errorf("the header of the record is malformed")
	errCut    = fmt.Errorf("the record is incomplete")
)

// parseHeader parses the header at the beginning of a record. It returns errCut if b ends
// before the end of the header.
func parseHeader(b []byte) (header, error) {
	var h header
	switch {
	case len(b) < 1:
		return h, errCut
	case b[0] != 1<<3:
		return h, errHeader
	case len(b) < 2:
		return h, errCut
	case b[1] < byte(typeMetadata) || b[1] > byte(typeSnapshot):
		return h, errHeader
	case len(b) < 3:
		return h, errCut
	case b[2] != 2<<3:
		return h, errHeader
	}
	h.kind = recordType(b[1])
	crc, n, err := parseVarint(b[3:])
	if err != nil {
		return h, err
	}
	if crc > math.MaxUint32 {
		return h, errHeader
	}
	h.crc, h.length = uint32(crc), 3+n
	if h.kind == typeChecksum { // has no data
		return h, nil
	}
	b = b[h.length:]
	switch {
	case len(b) < 1:
		return h, errCut
	case b[0] != 3<<3|2:
		return h, errHeader
	}
	data, n, err := parseVarint(b[1:])
	if err != nil {
		return h, err
	}
	if data > recordMax {
		return h, errHeader
	}
	h.length += 1 + n
	h.data = int(data)
	return h, nil
}

// parseVarint parses a varint in its shortest form.
func parseVarint(b []byte) (v uint64, n int, err error) {
	v, n = binary.Uvarint(b)
	switch {
	case n == 0:
		return 0, 0, errCut
	case n < 0, n > 1 && b[n-1] == 0:
		return 0, 0, errHeader
	}
	return v, n, nil
}

// parseFields parses a message of varint fields, numbered from first, each exactly once
// and in order. If asBytes is set, a field of bytes follows, which it returns.
func parseFields(b []byte, values []uint64, first int, asBytes bool) (data []byte, ok bool) {
	last := first + len(values)
	for i := range values {
		if len(b) == 0 || b[0] != byte(first+i)<<3 {
			return nil, false
		}
		v, n, err := parseVarint(b[1:])
		if err != nil {
			return nil, false
		}
		values[i], b = v, b[1+n:]
	}
	if !asBytes {
		return nil, len(b) == 0
	}
	if len(b) == 0 || b[0] != byte(last)<<3|2 {
		return nil, false
	}
	v, n, err := parseVarint(b[1:])
	if err != nil || v != uint64(len(b)-1-n) {
		return nil, false
	}
	return b[1+n:], true
}

// entryRecord is the record of an entry. It always has a data field, because an entry
// without one looks like a state.
type entryRecord struct {
	kind        raftpb.EntryType
	index, term uint64
	data        []byte
}

func parseEntry(b []byte) (e entryRecord, ok bool) {
	if len(b) > 0 && b[0] == 1<<3 {
		kind, n, err := parseVarint(b[1:])
		if err != nil || kind > uint64(raftpb.EntryConfChangeV2) {
			return e, false
		}
		e.kind, b = raftpb.EntryType(kind), b[1+n:]
	}
	var values [2]uint64
	e.data, ok = parseFields(b, values[:], 2, true)
	e.term, e.index = values[0], values[1]
	return e, ok
}

// stateRecord is the record of a state.
type stateRecord struct {
	hardState
	mark   mark
	marked bool
}

func parseState(b []byte) (s stateRecord, ok bool) {
	var values [3]uint64
	rest := b
	for i := range values {
		if len(rest) == 0 || rest[0] != byte(1+i)<<3 {
			return s, false
		}
		v, n, err := parseVarint(rest[1:])
		if err != nil {
			return s, false
		}
		values[i], rest = v, rest[1+n:]
	}
	s.hardState = hardState{values[0], values[1], values[2]}
	if len(rest) == 0 { // written by a version without marks, or after the entries of a save
		return s, true
	}
	s.mark, s.marked = parseMark(b, len(b)-len(rest))
	return s, s.marked
}

// parseSnapshot parses the record of a snapshot. Only the first one of a log, at index 0,
// has no members.
func parseSnapshot(b []byte) (at position, ok bool) {
	var values [2]uint64
	if _, ok = parseFields(b, values[:], 1, false); !ok {
		_, ok = parseFields(b, values[:], 1, true)
	}
	return position{values[0], values[1]}, ok
}
