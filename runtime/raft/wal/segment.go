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

	"github.com/topogen/topogen/runtime/internal/pagecache"
	"github.com/topogen/topogen/runtime/internal/regular"
)

// segment is a file of the log.
type segment struct {
	path       string
	seq, index uint64 // from its name: its number, and the index of its first entry
}

const segmentSuffix = ".wal"

// segments lists the segments of a log in order. It ignores files with other suffixes. A
// file with the suffix of a segment and an invalid name is damage.
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
			return nil, &DamageError{File: s.path, Reason: fmt.Sprintf("the name of a segment must be two numbers of 16 hexadecimal digits and %s", segmentSuffix)}
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b segment) int { return strings.Compare(a.path, b.path) })
	for i, s := range all {
		if i > 0 && s.seq != all[i-1].seq+1 {
			return nil, &DamageError{File: s.path, Reason: fmt.Sprintf("segment %d must follow segment %d, got segment %d: segments are missing", all[i-1].seq+1, all[i-1].seq, s.seq)}
		}
	}
	return all, nil
}

func (s segment) name() string {
	return fmt.Sprintf("%016x-%016x%s", s.seq, s.index, segmentSuffix)
}

// flawError reports the first place in a segment where there is no valid record.
type flawError struct {
	offset  int64
	reason  string
	crcDiff uint32 // XOR of the segment's first checksum and the last checksum of the previous segment
	short   bool   // the file is shorter than a segment
}

func (e *flawError) Error() string { return e.reason }

func flawed(offset int64, format string, args ...any) error {
	return &flawError{offset: offset, reason: fmt.Sprintf(format, args...)}
}

// segmentReader reads the records of a segment and checks their frames and checksums.
type segmentReader struct {
	file     *os.File
	size     int64
	offset   int64  // of the next frame
	crc      uint32 // after the last record
	crcKnown bool   // crc was set by the previous segment, so the checksum record must match it
	count    int    // of records
	buf      []byte // bytes from offset on that were read ahead
	storage  []byte // the memory of buf
	bufEnd   int64  // file offset of the end of buf
}

// readBytes is the size of a read: large enough for few system calls, and little memory.
const readBytes = 256 << 10

func openSegment(path string, crc uint32, crcKnown bool) (*segmentReader, error) {
	file, info, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	pagecache.TryDrop(file) // read what the disk has, also after a sync that has failed
	return &segmentReader{file: file, size: info.Size(), crc: crc, crcKnown: crcKnown}, nil
}

// openFile opens a file of the log. A file that is not regular is damage: reading it may
// block, or never end.
func openFile(path string, flag int) (*os.File, os.FileInfo, error) {
	file, info, err := regular.OpenOwn(path, flag)
	if errors.Is(err, regular.ErrNotRegular) {
		return nil, nil, &DamageError{File: path, Reason: systemError(err).Error()}
	}
	return file, info, err
}

func (r *segmentReader) close() { _ = r.file.Close() }

// next returns the next record. Its data is valid until the next call. The error is io.EOF
// if only zeros follow, and a *flawError if there is no valid record.
func (r *segmentReader) next() (rec record, length int64, err error) {
	left := r.size - r.offset
	if left == 0 {
		return rec, 0, io.EOF
	}
	b, err := r.peek(min(left, wordBytes))
	if err != nil {
		return rec, 0, err
	}
	if left < wordBytes { // even if these bytes are zero: the engine cannot append after them
		return rec, 0, flawed(r.offset, "the file ends inside a length word")
	}
	word := binary.LittleEndian.Uint64(b)
	if word == 0 {
		return rec, 0, r.end()
	}
	n, padding, ok := frameLength(word)
	switch {
	case !ok:
		return rec, 0, flawed(r.offset, "the length word %#x is invalid", word)
	case n+padding > left-wordBytes:
		return rec, 0, flawed(r.offset, "the file ends inside a record of %d bytes", n)
	}
	length = wordBytes + n + padding
	if b, err = r.peek(length); err != nil {
		return rec, 0, err
	}
	if rec, err = parseRecord(b[wordBytes : wordBytes+n]); err != nil {
		return rec, 0, flawed(r.offset, "%v", err)
	}
	if !allZero(b[wordBytes+n:]) {
		return rec, 0, flawed(r.offset, "the padding must be zero")
	}
	if err := r.verify(rec); err != nil {
		return rec, 0, err
	}
	r.offset += length
	r.buf = r.buf[length:]
	r.count++
	return rec, length, nil
}

// verify checks the checksum and the position of a record. A segment must begin with the
// checksum of the segments before it, followed by the identity.
func (r *segmentReader) verify(rec record) error {
	switch {
	case (r.count == 0) != (rec.kind == typeChecksum), (r.count == 1) != (rec.kind == typeMetadata):
		return flawed(r.offset, "a segment must begin with its checksum and identity and contain no others, got record %d of type %v", r.count, rec.kind)
	case r.count == 0 && r.crcKnown && rec.crc != r.crc:
		reason := fmt.Sprintf("the segment must begin with the last checksum of the previous segment, %08x, got %08x", r.crc, rec.crc)
		return &flawError{offset: r.offset, reason: reason, crcDiff: r.crc ^ rec.crc}
	case r.count == 0:
		r.crc = rec.crc
		return nil
	}
	crc := crc32.Update(r.crc, castagnoli, rec.data)
	if crc != rec.crc {
		return flawed(r.offset, "the checksum must be %08x, got %08x", rec.crc, crc)
	}
	r.crc = crc
	return nil
}

// end checks that only zeros follow. It does not read a file that is longer than a crash
// can leave it: a sparse file of any size takes no space on the disk.
func (r *segmentReader) end() error {
	if r.size-r.offset > tornMax {
		return flawed(r.offset, "the log ends here and must be followed by at most %d zeros, but the file has %d bytes", tornMax, r.size)
	}
	b := make([]byte, min(r.size-r.offset, readBytes))
	for at := r.offset; at < r.size; at += int64(len(b)) {
		b = b[:min(r.size-at, readBytes)]
		if _, err := r.file.ReadAt(b, at); err != nil {
			return err
		}
		if !allZero(b) {
			i := slices.IndexFunc(b, func(c byte) bool { return c != 0 })
			return flawed(r.offset, "the log ends here and only zeros may follow, got another byte at offset %d", at+int64(i))
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
		err = fmt.Errorf("wal: %s was truncated while it was read", r.file.Name())
	}
	return nil, err
}

// peekAt returns n bytes at an offset, without the buffer.
func (r *segmentReader) peekAt(at, n int64) ([]byte, error) {
	b := make([]byte, n)
	if _, err := r.file.ReadAt(b, at); err != nil {
		return nil, err
	}
	return b, nil
}

func allZero(b []byte) bool {
	for ; len(b) >= wordBytes; b = b[wordBytes:] { // word by word, because there may be millions
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
