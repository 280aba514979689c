package wal

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// A crash leaves torn writes. The space behind the end is zero, and a disk writes each
// sector as a whole, or not, in any order. So of records that were not synced, any
// sectors may be missing, which is to say zero; or the file ends among them. A sector
// that is there is right. That tells a torn write from damage: if a record fails its
// checksum, some sector of it must be zero, the others must fit together, and one
// flipped bit outside of the missing sectors must not explain it. If the log has marks,
// they say whether the record was synced; see mark. If it has none, there must be no
// record behind it: records behind a synced one were written later.

// tornMax bounds what is looked at behind the last record or a flaw, which is in
// memory then: more than a segment and the largest record.
const tornMax = 256 << 20

// oneBitMax bounds the data of records that a flipped bit is looked for in, besides missing
// sectors, if marks say whether a record was synced. A random difference of a checksum is
// that of some bit: for data of this size once in 500,000 times, for 1 MiB in 500. The log
// would not open then.
const oneBitMax = 1 << 10

// tail is what follows the last right record.
type tail struct {
	b        []byte // up to the end of the file
	offset   int64  // of its first byte in the file
	crc      uint32 // of all before
	position int    // of the next record in the segment
}

// torn reports whether the next record is flawed by nothing but missing sectors, with no
// whole record behind it if it must be alone.
func (t tail) torn(unmarked bool) bool {
	if len(t.b) < wordBytes {
		return true // the file ends in a length
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
	present := t.firstMissing(min(end, len(t.b)))
	h, err := parseHeader(t.b[wordBytes:present])
	headed := err == nil
	switch {
	case err != nil && err != errCut:
		return false
	case headed && (h.length+h.data != int(n) || (h.kind == typeChecksum) != (t.position == 0) || (h.kind == typeMetadata) != (t.position == 1)):
		return false
	case end+int(padding) > len(t.b):
		return true // the file ends in the record
	case present == end:
		return false // nothing is missing
	case headed && (unmarked || h.data <= oneBitMax) && t.oneBit(h, wordBytes+h.length, end):
		return false
	}
	return !unmarked || !t.skip(end+int(padding)).hasRecord(h.crc, headed)
}

// tornHead is torn where the length is zero: its sector is missing.
func (t tail) tornHead(unmarked bool) bool {
	first := t.sector(0, len(t.b))
	return allZero(t.b[:first]) && (!unmarked || !t.lengthFlipped() && !t.skip(first).hasRecord(0, false))
}

// lengthFlipped reports whether the length is zero because one bit of it is.
func (t tail) lengthFlipped() bool {
	for n := wordBytes; n <= min(recordMax, len(t.b)-wordBytes); n *= 2 {
		rec, err := parseRecord(t.b[wordBytes : wordBytes+n])
		if err == nil && crc32.Update(t.crc, castagnoli, rec.data) == rec.crc {
			return true
		}
	}
	return false
}

// from is the tail without its first n bytes.
func (t tail) skip(n int) tail {
	return tail{b: t.b[n:], offset: t.offset + int64(n), position: headRecords}
}

// sector returns where the sector that holds b[at] ends, but not more than end.
func (t tail) sector(at, end int) int {
	return min(end, at+sectorBytes-int((t.offset+int64(at))%sectorBytes))
}

// present returns where the first missing sector of the record that ends at end
// begins, or end.
func (t tail) firstMissing(end int) int {
	for at := wordBytes; at < end; at = t.sector(at, end) {
		if t.missing(at) {
			return at
		}
	}
	return end
}

// missing reports whether the sector that holds b[at] is missing: it begins behind the
// length, and all of it is zero.
func (t tail) missing(at int) bool {
	begin := at - int((t.offset+int64(at))%sectorBytes)
	return begin >= wordBytes && allZero(t.b[begin:t.sector(at, len(t.b))])
}

// oneBit reports whether the checksum of a record whose data are b[begin:end] fits them,
// or does if one bit of either is flipped that is not in a missing sector. The checksum
// is linear: what flipping a bit does to it depends on how many bits follow, and on
// nothing else.
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

// record reports whether there is a record in the tail. Its checksum is looked at
// where that of the record before is present (seeded); where it is not, a record is
// one that has all its sectors.
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

// frame returns the record that begins at b[at], and where it ends.
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
