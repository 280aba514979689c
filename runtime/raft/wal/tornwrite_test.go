package wal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"google.golang.org/protobuf/proto"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
)

// frameOf returns a record in the frame of the engine, as the first record of a chain.
func frameOf(kind int64, data []byte) ([]byte, error) {
	crc := crc32.Checksum(data, castagnoli)
	b, err := proto.Marshal(&walpb.Record{Type: &kind, Crc: &crc, Data: data})
	if err != nil {
		return nil, err
	}
	padding := -len(b) & (wordBytes - 1)
	word := uint64(len(b))
	if padding > 0 {
		word |= uint64(0x80|padding) << 56
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, word), b...), make([]byte, padding)...), nil
}

// TestTornByOneBit: a sector with a single bit that became zero is a missing sector. A bit that
// flipped outside of missing sectors is damage.
func TestTornByOneBit(t *testing.T) {
	data := make([]byte, oneBitMax)
	copy(data, "zeros follow")
	data[len(data)/2] = 0x10
	frame, err := frameOf(etcdwal.EntryType, data)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndexByte(frame, 0x10)
	frame = append(frame, make([]byte, 2*sectorBytes)...)
	torn := func(b []byte) bool { return tail{b: b, position: headRecords}.torn(false) }
	b := bytes.Clone(frame)
	clear(b[at/sectorBytes*sectorBytes : (at/sectorBytes+1)*sectorBytes])
	if !torn(b) {
		t.Error("a missing sector must be a torn write")
	}
	b = bytes.Clone(frame)
	b[wordBytes+15] ^= 1
	if torn(b) {
		t.Error("a flipped bit must not be a torn write")
	}
	b[at] = 0
	if !torn(b) { // a bit flipped in the first sector, and another sector is missing
		t.Error("a flipped bit in a record with a missing sector must be a torn write")
	}
}

// TestTornLength: a length word with one bit set is missing, and no other word of the record is
// in its sector. In a log with marks this is a torn write: if the bit had flipped, a later mark
// would prove that the record was synced.
func TestTornLength(t *testing.T) {
	var b []byte
	for data := []byte("x"); !bytes.HasPrefix(b, []byte{64, 0, 0, 0, 0, 0, 0, 0}); data = append(data, 'x') {
		var err error
		if b, err = frameOf(etcdwal.EntryType, data); err != nil || len(b) > 2*64 {
			t.Fatal("the test needs a record of 64 bytes", err)
		}
	}
	clear(b[:wordBytes])
	rest := tail{b: append(b, make([]byte, sectorBytes)...), offset: sectorBytes - wordBytes, position: headRecords}
	if !rest.torn(false) || rest.torn(true) {
		t.Errorf("torn: %v with marks, %v without; want true, false", rest.torn(false), rest.torn(true))
	}
}
