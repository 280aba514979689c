package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"google.golang.org/protobuf/proto"

	"go.etcd.io/raft/v3/raftpb"
)

// A snapshot with a body is a file of this format; numbers are little-endian:
//
//	"topogen-snap", uint32 version
//	chunks of the body: uint32 length, uint32 checksum, data
//	the head, a raftpb.Snapshot
//	uint64 length of the body, uint32 length of the head, uint32 checksum of the body,
//	uint32 checksum of the head, uint32 checksum of the 20 bytes before, "snap-end"
//
// All chunks but the last have bodyChunk bytes. The checksum of a chunk covers the body
// from its beginning to the end of the chunk, so a reader detects exchanged chunks.
// Checksums are CRC-32C. The head comes last because the writer may not know it earlier.
const (
	bodyMagic    = "topogen-snap"
	bodyVersion  = 1
	bodyHeader   = len(bodyMagic) + 4
	bodyChunk    = 256 << 10 // large enough for few system calls, and little memory
	chunkHeader  = 4 + 4
	bodyFooter   = 8 + 4 + 4 + 4 + 4 + len(bodyEnd)
	bodyEnd      = "snap-end"
	bodySyncStep = 16 << 20 // bytes between syncs; a sync of the log may have to wait for these bytes
)

// Limits of a snapshot with a body; writer and reader share them.
const (
	SnapshotBodyMax = 64 << 30 // bytes; enough for any state that fits into memory
	SnapshotHeadMax = 16 << 20 // bytes; for members and other small data
)

// ErrTooLarge matches the error for a snapshot that exceeds a limit. The log is unchanged
// after such an error.
var ErrTooLarge = errors.New("wal: the snapshot is too large")

var errBody = fmt.Errorf("%w: its body must have at most %d bytes", ErrTooLarge, int64(SnapshotBodyMax))

// marshalHead returns the encoded head of a snapshot, and checks its size.
func marshalHead(s *raftpb.Snapshot) ([]byte, error) {
	b, err := proto.Marshal(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	case len(b) > SnapshotHeadMax:
		return nil, fmt.Errorf("%w: its head must have at most %d bytes, got %d", ErrTooLarge, SnapshotHeadMax, len(b))
	}
	return b, nil
}

// bodyWriter writes the file of a snapshot. The file contains nothing else.
type bodyWriter struct {
	file     *os.File
	chunk    []byte // the next chunk: room for its header, and the data so far
	size     int64  // of the body, including the data in chunk
	crc      uint32 // of the body, without the data in chunk
	unsynced int
	fsync    func(*os.File) error
	err      error // of the first failed call; later calls return it
}

func newBodyWriter(file *os.File, fsync func(*os.File) error) (*bodyWriter, error) {
	w := &bodyWriter{file: file, chunk: make([]byte, chunkHeader, chunkHeader+bodyChunk), fsync: fsync}
	_, err := file.Write(binary.LittleEndian.AppendUint32([]byte(bodyMagic), bodyVersion))
	return w, err
}

func (w *bodyWriter) Write(p []byte) (n int, err error) {
	if w.err == nil && int64(len(p)) > SnapshotBodyMax-w.size {
		w.err = errBody
	}
	for w.err == nil && len(p) > 0 {
		k := min(len(p), cap(w.chunk)-len(w.chunk))
		w.chunk = append(w.chunk, p[:k]...)
		w.size += int64(k)
		n, p = n+k, p[k:]
		if len(w.chunk) == cap(w.chunk) {
			w.err = w.flush()
		}
	}
	return n, w.err
}

// flush writes the chunk.
func (w *bodyWriter) flush() error {
	data := w.chunk[chunkHeader:]
	if len(data) == 0 {
		return nil
	}
	w.crc = crc32.Update(w.crc, castagnoli, data)
	binary.LittleEndian.PutUint32(w.chunk, uint32(len(data)))
	binary.LittleEndian.PutUint32(w.chunk[4:], w.crc)
	n, err := w.file.Write(w.chunk)
	w.chunk = w.chunk[:chunkHeader]
	if w.unsynced += n; err != nil || w.unsynced < bodySyncStep {
		return err
	}
	w.unsynced = 0
	return w.fsync(w.file)
}

// finish writes the head and the footer, and syncs.
func (w *bodyWriter) finish(head []byte) error {
	if w.err == nil {
		w.err = w.flush()
	}
	if w.err == nil {
		_, w.err = w.file.Write(w.footer(head))
	}
	if w.err == nil {
		w.err = w.fsync(w.file)
	}
	return w.err
}

// footer returns the head followed by the footer.
func (w *bodyWriter) footer(head []byte) []byte {
	b := binary.LittleEndian.AppendUint64(append([]byte(nil), head...), uint64(w.size))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(head)))
	b = binary.LittleEndian.AppendUint32(b, w.crc)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(head, castagnoli))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[len(head):], castagnoli))
	return append(b, bodyEnd...)
}

// bodyReader reads a body. It checks each chunk before it returns any byte of it.
type bodyReader struct {
	file    *os.File
	offset  int64 // offset of the next chunk
	left    int64 // bytes of the body that were not read yet
	crc     uint32
	bodyCRC uint32 // expected, of the whole body
	buf     []byte
	unread  []byte // rest of the chunk that was read last
	err     error  // of the first failed call; later calls return it
}

func newBodyReader(file *os.File, size int64, crc uint32) *bodyReader {
	return &bodyReader{file: file, offset: int64(bodyHeader), left: size, bodyCRC: crc}
}

func (r *bodyReader) Read(p []byte) (int, error) {
	if len(r.unread) == 0 && r.err == nil {
		r.err = r.next()
	}
	if len(r.unread) == 0 {
		return 0, r.err
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

// next reads the next chunk. It returns io.EOF after the last one.
func (r *bodyReader) next() error {
	if r.left == 0 && r.crc != r.bodyCRC {
		return r.damaged("the checksum of the body must be %08x, got %08x", r.bodyCRC, r.crc)
	}
	if r.left == 0 {
		return io.EOF
	}
	n := int(min(r.left, bodyChunk))
	if r.buf == nil {
		r.buf = make([]byte, chunkHeader+n)
	}
	b := r.buf[:chunkHeader+n]
	if _, err := r.file.ReadAt(b, r.offset); err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint32(b); got != uint32(n) {
		return r.damaged("a chunk must have %d bytes, got %d", n, got)
	}
	crc := crc32.Update(r.crc, castagnoli, b[chunkHeader:])
	if want := binary.LittleEndian.Uint32(b[4:]); crc != want {
		return r.damaged("the checksum of a chunk must be %08x, got %08x", want, crc)
	}
	r.crc, r.unread = crc, b[chunkHeader:]
	r.offset += int64(len(b))
	r.left -= int64(n)
	return nil
}

func (r *bodyReader) damaged(format string, args ...any) error {
	return &DamageError{File: r.file.Name(), Offset: r.offset, Reason: fmt.Sprintf(format, args...)}
}

func (r *bodyReader) Close() error { return r.file.Close() }

// chunkedSize returns how many bytes a body takes in the file, with the headers of its
// chunks.
func chunkedSize(body int64) int64 {
	return body + chunkHeader*((body+bodyChunk-1)/bodyChunk)
}

// readHead reads the head. It checks the head, the footer and the length of the file. The
// body is checked when it is read.
func (f snapshotFile) readHead(file *os.File, size int64) (*SnapshotReader, error) {
	damaged := func(offset int64, format string, args ...any) error {
		return &DamageError{File: f.path, Offset: offset, Reason: fmt.Sprintf(format, args...)}
	}
	end := size - int64(bodyFooter)
	footer := make([]byte, bodyFooter)
	begin := make([]byte, bodyHeader)
	if end < int64(bodyHeader) {
		return nil, damaged(0, "a snapshot must have at least %d bytes, got %d", bodyHeader+bodyFooter, size)
	}
	if _, err := file.ReadAt(begin, 0); err != nil {
		return nil, err
	}
	if _, err := file.ReadAt(footer, end); err != nil {
		return nil, err
	}
	if v := binary.LittleEndian.Uint32(begin[len(bodyMagic):]); v != bodyVersion {
		return nil, damaged(0, "the version of the snapshot must be %d, got %d", bodyVersion, v)
	}
	body := int64(binary.LittleEndian.Uint64(footer))
	head := int64(binary.LittleEndian.Uint32(footer[8:]))
	switch {
	case string(footer[24:]) != bodyEnd, crc32.Checksum(footer[:20], castagnoli) != binary.LittleEndian.Uint32(footer[20:]):
		return nil, damaged(end, "the snapshot must end with a valid footer")
	case body < 0 || body > SnapshotBodyMax || head > SnapshotHeadMax:
		return nil, damaged(end, "the body must have at most %d bytes and the head at most %d, got %d and %d", int64(SnapshotBodyMax), SnapshotHeadMax, body, head)
	case int64(bodyHeader)+chunkedSize(body)+head != end:
		return nil, damaged(end, "a snapshot with a body of %d bytes and a head of %d must have %d bytes, got %d", body, head, size-end+int64(bodyHeader)+chunkedSize(body)+head, size)
	}
	b := make([]byte, head)
	if _, err := file.ReadAt(b, end-head); err != nil {
		return nil, err
	}
	if want, got := binary.LittleEndian.Uint32(footer[16:]), crc32.Checksum(b, castagnoli); got != want {
		return nil, damaged(end-head, "the checksum of the head must be %08x, got %08x", want, got)
	}
	s := new(raftpb.Snapshot)
	if err := proto.Unmarshal(b, s); err != nil {
		return nil, damaged(end-head, "%v", err)
	}
	return &SnapshotReader{Snapshot: s, Size: body, body: newBodyReader(file, body, binary.LittleEndian.Uint32(footer[12:]))}, nil
}
