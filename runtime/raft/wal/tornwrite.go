package wal

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// A crash can leave torn writes. The space after the last record is zero, and a disk writes
// each sector completely or not at all, in any order. So any sectors of unsynced records may
// be missing, which means zero, or the file may end inside them. The other sectors are
// correct. This distinguishes a torn write from damage. If the checksum of a record does not
// match, the write is torn if these conditions hold:
//
//   - at least one sector of the record is zero
//   - the other sectors contain valid parts of a record
//   - one flipped bit outside of the missing sectors does not explain the mismatch
//   - if the log has marks, no mark says that the record was synced; see mark
//   - if the log has no marks, no record follows: a record after a synced one was written
//     later

// tornMax is the maximal number of bytes that are read after the last record or a flaw. They
// are kept in memory. It is more than a segment and the largest record.
const tornMax = 256 << 20

// oneBitMax is the maximal size of data, in bytes, in which a record with missing sectors is
// searched for a flipped bit, if the log has marks. A random checksum mismatch looks like one
// flipped bit once in 500,000 times for data of this size, and once in 500 times for 1 MiB.
// Then a log with a torn write would not open.
const oneBitMax = 1 << 10

// tail is the part of a segment after the last valid record.
type tail struct {
	b        []byte // up to the end of the file
	offset   int64  // of its first byte in the file
	crc      uint32 // of all records before
	position int    // of the next record in the segment
}

// torn reports whether missing sectors alone explain the flaw of the next record. In a log
// without marks (unmarked), no complete record may follow either.
func (t tail) torn(unmarked bool) bool {
	if len(t.b) < wordBytes {
		return true // the file ends inside a length word
	}
	word := binary.LittleEndian.Uint64(t.b)
	if word == 0 {
		return t.tornHead(unmarked)
	}
	n, padding, ok := frameLength(word)
	if !ok {
		return false
	}
	end := wordBytes + int(n)
	missingAt := t.firstMissing(min(end, len(t.b)))
	h, err := parseHeader(t.b[wordBytes:missingAt])
	headed := err == nil
	switch {
	case err != nil && err != errCut:
		return false
	case headed && (h.length+h.data != int(n) || (h.kind == typeChecksum) != (t.position == 0) || (h.kind == typeMetadata) != (t.position == 1)):
		return false
	case end+int(padding) > len(t.b):
		return true // the file ends inside the record
	case missingAt == end:
		return false // no sector is missing
	case headed && (unmarked || h.data <= oneBitMax) && t.oneBit(h, wordBytes+h.length, end):
		return false
	}
	return !unmarked || !t.skip(end+int(padding)).hasRecord(h.crc, headed)
}

// tornHead is torn for a length word of zero: the sector of the length is missing.
func (t tail) tornHead(unmarked bool) bool {
	first := t.sector(0, len(t.b))
	return allZero(t.b[:first]) && (!unmarked || !t.lengthFlipped() && !t.skip(first).hasRecord(0, false))
}

// lengthFlipped reports whether one flipped bit made the length word zero.
func (t tail) lengthFlipped() bool {
	for n := wordBytes; n <= min(recordMax, len(t.b)-wordBytes); n *= 2 {
		rec, err := parseRecord(t.b[wordBytes : wordBytes+n])
		if err == nil && crc32.Update(t.crc, castagnoli, rec.data) == rec.crc {
			return true
		}
	}
	return false
}

// skip returns the tail without its first n bytes.
func (t tail) skip(n int) tail {
	return tail{b: t.b[n:], offset: t.offset + int64(n), position: headRecords}
}

// sector returns the end of the sector that contains b[at], but at most end.
func (t tail) sector(at, end int) int {
	return min(end, at+sectorBytes-int((t.offset+int64(at))%sectorBytes))
}

// firstMissing returns the beginning of the first missing sector of the record that ends at
// end, or end if no sector is missing.
func (t tail) firstMissing(end int) int {
	for at := wordBytes; at < end; at = t.sector(at, end) {
		if t.missing(at) {
			return at
		}
	}
	return end
}

// missing reports whether the sector that contains b[at] is missing: it begins after the
// length word, and all of its bytes are zero.
func (t tail) missing(at int) bool {
	begin := at - int((t.offset+int64(at))%sectorBytes)
	return begin >= wordBytes && allZero(t.b[begin:t.sector(at, len(t.b))])
}

// oneBit reports whether the checksum of a record matches its data, b[begin:end], either as
// they are or after one bit is flipped in the checksum or in the data outside of missing
// sectors. The checksum is linear: the effect of a flipped bit on it depends only on the
// number of bits that follow.
func (t tail) oneBit(h header, begin, end int) bool {
	syndrome := h.crc ^ crc32.Update(t.crc, castagnoli, t.b[begin:end])
	if bits.OnesCount32(syndrome) <= 1 {
		return true
	}
	var deltas [8]uint32
	for i := range deltas {
		deltas[i] = castagnoli[1<<i]
	}
	for at := end - 1; at >= begin; at-- {
		for i, d := range deltas {
			if d == syndrome && !t.missing(at) {
				return true
			}
			deltas[i] = castagnoli[d&0xff] ^ d>>8
		}
	}
	return false
}

// hasRecord reports whether the tail contains a complete record. If the checksum of the
// previous record is known (seeded), the checksum of the record must match. Otherwise the
// record must have all its sectors.
func (t tail) hasRecord(seed uint32, seeded bool) bool {
	for at := 0; at+wordBytes <= len(t.b); {
		rec, end, ok := t.frame(at)
		if !ok {
			at, seeded = at+wordBytes, false
			continue
		}
		if seeded && crc32.Update(seed, castagnoli, rec.data) == rec.crc || !seeded && t.skip(at).firstMissing(end-at) == end-at {
			return true
		}
		seed, seeded = rec.crc, true
		at = end + -end&(wordBytes-1)
	}
	return false
}

// frame returns the record that begins at b[at], and the offset of its end.
func (t tail) frame(at int) (record, int, bool) {
	word := binary.LittleEndian.Uint64(t.b[at:])
	if word == 0 {
		return record{}, 0, false
	}
	n, padding, ok := frameLength(word)
	left := len(t.b) - at - wordBytes
	if !ok || n+padding > int64(left) {
		return record{}, 0, false
	}
	end := at + wordBytes + int(n)
	rec, err := parseRecord(t.b[at+wordBytes : end])
	return rec, end, err == nil
}
