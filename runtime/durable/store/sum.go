package store

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/topogen/topogen/runtime/durable/core"
)

// sumBytes is the length of the checksum that follows each value in the file.
const sumBytes = 8

// sum returns the checksum of a record. The seed is the table, so that a record in a
// wrong table does not match. The length of the key separates key and value.
func sum(t core.Table, key, value []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(uint64(t) | uint64(len(key))<<8)
	_, _ = d.Write(key) // never fails
	_, _ = d.Write(value)
	return d.Sum64()
}

// appendStored appends a value as the file contains it, with its checksum.
func appendStored(to []byte, t core.Table, key, value []byte) ([]byte, uint64) {
	s := sum(t, key, value)
	return binary.LittleEndian.AppendUint64(append(to, value...), s), s
}

// stored splits a value of the file and checks its checksum.
func stored(t core.Table, key, value []byte) ([]byte, uint64, error) {
	if len(value) < sumBytes {
		return nil, 0, fmt.Errorf("the value has %d bytes, too few for its checksum", len(value))
	}
	n := len(value) - sumBytes
	s := binary.LittleEndian.Uint64(value[n:])
	if s != sum(t, key, value[:n]) {
		return nil, 0, fmt.Errorf("the checksum of the record is wrong")
	}
	return value[:n:n], s, nil
}

// A total describes the set of the records of a table: their number and the sum of their
// checksums. A record that was lost or came back changes both, although every record that
// is left is intact.
type total struct {
	count uint64
	sum   uint64
}

func (t *total) add(s uint64)    { t.count++; t.sum += s }
func (t *total) remove(s uint64) { t.count--; t.sum -= s }

type totals [Tables]total

// encode returns the number of the commit, the totals of the tables that are not empty, and a
// checksum.
func (t *totals) encode(commit uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, commit)
	for table, one := range t {
		if one != (total{}) {
			b = append(b, byte(table))
			b = binary.LittleEndian.AppendUint64(b, one.count)
			b = binary.LittleEndian.AppendUint64(b, one.sum)
		}
	}
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

// totalBytes is the length of the total of a table.
const totalBytes = 1 + 8 + 8

// commitBytes is the length of the number of a commit.
const commitBytes = 8

// decodeTotals also returns the number of the commit that wrote them. It is 0 in files of
// version 1, which have none.
func decodeTotals(b []byte) (t totals, commit uint64, err error) {
	n := len(b) - sumBytes
	if n < 0 || xxhash.Sum64(b[:n]) != binary.LittleEndian.Uint64(b[n:]) {
		return t, 0, fmt.Errorf("the totals of the tables are damaged")
	}
	if b = b[:n]; n%totalBytes == commitBytes {
		commit = binary.LittleEndian.Uint64(b)
		b = b[commitBytes:]
	} else if n%totalBytes != 0 {
		return t, 0, fmt.Errorf("the totals of the tables have %d bytes", n)
	}
	for ; len(b) > 0; b = b[totalBytes:] {
		if b[0] >= Tables {
			return t, 0, fmt.Errorf("the totals name table %d, the last table is %d", b[0], Tables-1)
		}
		t[b[0]] = total{binary.LittleEndian.Uint64(b[1:]), binary.LittleEndian.Uint64(b[9:])}
	}
	return t, commit, nil
}
