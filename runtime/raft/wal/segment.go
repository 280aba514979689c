package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/topogen/topogen/runtime/internal/regular"
)

// segment is a file of the log.
type segment struct {
	path       string
	seq, index uint64 // of its name: its number, and the index of its first entry
}

const segmentSuffix = ".wal"

// segments lists the files of a log in order. Names of another form are no files
// of ours, but for those that end as ours do.
func segments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []segment
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), segmentSuffix) {
			continue
		}
		s := segment{path: filepath.Join(dir, e.Name())}
		if _, err := fmt.Sscanf(e.Name(), "%016x-%016x"+segmentSuffix, &s.seq, &s.index); err != nil || e.Name() != s.name() {
			return nil, &DamageError{File: s.path, Reason: "no segment of a log has such a name"}
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b segment) int { return strings.Compare(a.path, b.path) })
	for i, s := range all {
		if i > 0 && s.seq != all[i-1].seq+1 {
			return nil, &DamageError{File: s.path, Reason: fmt.Sprintf("segment %d follows segment %d: others are missing", s.seq, all[i-1].seq)}
		}
	}
	return all, nil
}

func (s segment) name() string {
	return fmt.Sprintf("%016x-%016x%s", s.seq, s.index, segmentSuffix)
}

// flawError is a place at which a segment does not go on as it should.
type flawError struct {
	offset  int64
	reason  string
	crcDiff uint32 // bits by which the segment's first checksum differs from that of the segment before
	short   bool   // the file is shorter than a segment
}

func (e *flawError) Error() string { return e.reason }

func flawed(offset int64, format string, args ...any) error {
	return &flawError{offset: offset, reason: fmt.Sprintf(format, args...)}
}

// segmentReader reads a segment's records and checks their frames and checksums.
type segmentReader struct {
	file     *os.File
	size     int64
	offset   int64  // of the next frame
	crc      uint32 // after the last record
	crcKnown bool   // crc is known: what a checksum record must say
	count    int    // of records
	buf      []byte // what was read of the file and is not used, from offset on
	storage  []byte // what buf is a part of
	bufEnd   int64  // offset of the end of buf
}

// readBytes is what is read at once: few calls, and little memory.
const readBytes = 256 << 10

func openSegment(path string, crc uint32, crcKnown bool) (*segmentReader, error) {
	file, info, err := openFile(path)
	if err != nil {
		return nil, err
	}
	return &segmentReader{file: file, size: info.Size(), crc: crc, crcKnown: crcKnown}, nil
}

// openFile opens a file of the log. Anything but a regular file is damage: reading
// it may block, or never end.
func openFile(path string) (*os.File, os.FileInfo, error) {
	file, info, err := regular.Open(path)
	if errors.Is(err, regular.ErrNotRegular) {
		return nil, nil, &DamageError{File: path, Reason: systemError(err).Error()}
	}
	return file, info, err
}

func (r *segmentReader) close() { _ = r.file.Close() }

// next returns the next record; its data is valid until the next call. The error is
// io.EOF at the end, behind which there are at most zeros, and an *flawError where
// there is no right record.
func (r *segmentReader) next() (rec record, length int64, err error) {
	left := r.size - r.offset
	if left == 0 {
		return rec, 0, io.EOF
	}
	b, err := r.peek(min(left, wordBytes))
	if err != nil {
		return rec, 0, err
	}
	if left < wordBytes { // which the engine does not go on behind, zero or not
		return rec, 0, flawed(r.offset, "the file ends in a length")
	}
	word := binary.LittleEndian.Uint64(b)
	if word == 0 {
		return rec, 0, r.end()
	}
	n, padding, ok := frameLength(word)
	switch {
	case !ok:
		return rec, 0, flawed(r.offset, "the length is not one: %#x", word)
	case n+padding > left-wordBytes:
		return rec, 0, flawed(r.offset, "the file ends in a record of %d bytes", n)
	}
	length = wordBytes + n + padding
	if b, err = r.peek(length); err != nil {
		return rec, 0, err
	}
	if rec, err = parseRecord(b[wordBytes : wordBytes+n]); err != nil {
		return rec, 0, flawed(r.offset, "%v", err)
	}
	if !allZero(b[wordBytes+n:]) {
		return rec, 0, flawed(r.offset, "the padding is not zero")
	}
	if err := r.verify(rec); err != nil {
		return rec, 0, err
	}
	r.offset += length
	r.buf = r.buf[length:]
	r.count++
	return rec, length, nil
}

// verify checks the record's checksum and place: a segment begins with the checksum
// of those before it, and the identity.
func (r *segmentReader) verify(rec record) error {
	switch {
	case (r.count == 0) != (rec.kind == typeChecksum), (r.count == 1) != (rec.kind == typeMetadata):
		return flawed(r.offset, "record %d of the file is of the kind %v", r.count, rec.kind)
	case r.count == 0 && r.crcKnown && rec.crc != r.crc:
		reason := fmt.Sprintf("the segment before ends with checksum %08x, this one begins with %08x", r.crc, rec.crc)
		return &flawError{offset: r.offset, reason: reason, crcDiff: r.crc ^ rec.crc}
	case r.count == 0:
		r.crc = rec.crc
		return nil
	}
	crc := crc32.Update(r.crc, castagnoli, rec.data)
	if crc != rec.crc {
		return flawed(r.offset, "the checksum is %08x, that of what is there %08x", rec.crc, crc)
	}
	r.crc = crc
	return nil
}

// end looks whether there is nothing but zeros. A file that is longer than a crash
// can make it is not read to its end: a hole takes no space on the disk, and so the
// size may be anything.
func (r *segmentReader) end() error {
	if r.size-r.offset > tornMax {
		return flawed(r.offset, "the log ends here, but the file has %d bytes; at most %d may follow", r.size, tornMax)
	}
	b := make([]byte, min(r.size-r.offset, readBytes))
	for at := r.offset; at < r.size; at += int64(len(b)) {
		b = b[:min(r.size-at, readBytes)]
		if _, err := r.file.ReadAt(b, at); err != nil {
			return err
		}
		if !allZero(b) {
			i := slices.IndexFunc(b, func(c byte) bool { return c != 0 })
			return flawed(r.offset, "the log ends here, but there is something at %d", at+int64(i))
		}
	}
	return io.EOF
}

// peek returns the next n bytes.
func (r *segmentReader) peek(n int64) ([]byte, error) {
	if int64(len(r.buf)) >= n {
		return r.buf[:n], nil
	}
	if int64(len(r.storage)) < n {
		all := make([]byte, max(n, min(readBytes, r.size)))
		copy(all, r.buf)
		r.storage, r.buf = all, all[:len(r.buf)]
	} else {
		copy(r.storage, r.buf)
		r.buf = r.storage[:len(r.buf)]
	}
	m, err := r.file.ReadAt(r.storage[len(r.buf):], r.bufEnd)
	r.bufEnd += int64(m)
	r.buf = r.storage[:len(r.buf)+m]
	if int64(len(r.buf)) >= n {
		return r.buf[:n], nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = fmt.Errorf("wal: %s became shorter while it was read", r.file.Name())
	}
	return nil, err
}

// peekAt returns n bytes from elsewhere.
func (r *segmentReader) peekAt(at, n int64) ([]byte, error) {
	b := make([]byte, n)
	if _, err := r.file.ReadAt(b, at); err != nil {
		return nil, err
	}
	return b, nil
}

func allZero(b []byte) bool {
	for ; len(b) >= wordBytes; b = b[wordBytes:] { // words, since there may be millions
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
