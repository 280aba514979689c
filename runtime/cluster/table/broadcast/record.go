package broadcast

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// recordSize is the size of a Record in a file.
const recordSize = 28

// Record is a change of the document's log (chimaera-reliability, 2.2). The numbers are
// little-endian in a file.
type Record struct {
	Time         uint64 // nanoseconds since 1970
	Major, Minor uint32 // of the pool; here Major is [Number] of the processor's name, and Minor is 0
	Container    uint32 // number of the instance
	Old, New     uint32 // [Number] of the names of the nodes; 0: none
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Number returns the number of a processor or node in records: the CRC-32C of its name; 0
// for "".
func Number(name string) uint32 { return crc32.Checksum([]byte(name), castagnoli) }

// Append appends the encoded record to b.
func (r *Record) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.Time)
	for _, v := range []uint32{r.Major, r.Minor, r.Container, r.Old, r.New} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func readRecord(b []byte) Record {
	n := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	return Record{binary.LittleEndian.Uint64(b), n(8), n(12), n(16), n(20), n(24)}
}

// PlainBytesMax limits a file of plain records.
const PlainBytesMax = 256 << 20

// ReadPlain reads a file of the document's form: records without header, length and
// checksum. torn is the number of bytes of an incomplete last record. Damage cannot be
// detected in this form.
func ReadPlain(b []byte) (list []Record, torn int, err error) {
	if len(b) > PlainBytesMax {
		return nil, 0, fmt.Errorf("%w: a file of %d bytes, at most %d", errLog, len(b), PlainBytesMax)
	}
	for ; len(b) >= recordSize; b = b[recordSize:] {
		list = append(list, readRecord(b))
	}
	return list, len(b), nil
}

// Container identifies a container in records.
type Container struct{ Major, Minor, Container uint32 }

// Places returns the node of each container after records of any number of files. The
// record with the highest time wins, whatever the order of the files; among equal times
// the last one wins.
func Places(list []Record) map[Container]uint32 {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b Record) int { return cmp.Compare(a.Time, b.Time) })
	places := make(map[Container]uint32)
	for _, r := range sorted {
		places[Container{r.Major, r.Minor, r.Container}] = r.New
	}
	return places
}
