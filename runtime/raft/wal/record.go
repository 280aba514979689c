package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
)

// A frame is a length word and a record, padded to a multiple of wordBytes: so no
// word is in two sectors. Length, padding, record and what is in it are read as
// strictly as they are written: with one form for each content, whatever the
// checksum does not cover cannot change without being noticed.
const (
	wordBytes   = 8
	sectorBytes = 512      // what a disk writes as a whole, at the least
	recordMin   = 4        // type and checksum
	recordMax   = 64 << 20 // frames of the transport are shorter
)

// recordType is the type of a record, as etcd numbers them.
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

// frameLength returns how long the record and its padding behind a length word
// are; ok is false for a word that nobody writes.
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

// record is a record's frame: what is in it is checked against the checksum by the
// reader.
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

// header is what a record has before its data.
type header struct {
	kind   recordType
	crc    uint32
	length int // of the header
	data   int // length of the data
}

var (
	errHeader = fmt.Errorf("the head of the record is not one")
	errCut    = fmt.Errorf("the record is incomplete")
)

// parseHeader parses the header that a record begins with. It returns errCut where
// b is the beginning of one.
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
	if h.kind == typeChecksum { // which has no data
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

// parseFields parses the fields of a message: those of want, which are numbers but
// for the last, which may be bytes (asBytes), each once and in order.
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

// entryRecord is an entry as it stands in the log. Its data field is always there:
// an entry without one could be taken for a state.
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

// stateRecord is a state as it stands in the log.
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
	if len(rest) == 0 { // as versions before marks wrote it
		return s, true
	}
	s.mark, s.marked = parseMark(b, len(b)-len(rest))
	return s, s.marked
}

// parseSnapshot parses what stands in the log for a snapshot: the first, with
// nothing in it, and those with members.
func parseSnapshot(b []byte) (at position, ok bool) {
	var values [2]uint64
	if _, ok = parseFields(b, values[:], 1, false); !ok {
		_, ok = parseFields(b, values[:], 1, true)
	}
	return position{values[0], values[1]}, ok
}
