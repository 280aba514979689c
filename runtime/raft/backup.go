package raft

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/internal/regular"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// A backup is a file that begins with a title line. Frames follow. A frame is
//
//	uint32 length, uint32 checksum, data
//
// with little-endian numbers. The checksum is the CRC-32C of the data of all frames up to
// this one. The first frame is the head. Then come chunks of the state and an empty
// frame, and then the entries and an empty frame, which ends the file.
const (
	backupTitle = "topogen raft backup 1\n"
	backupChunk = 256 << 10 // of the state; a compromise between the number of calls and memory
	backupMax   = 64 << 20  // bytes of a frame: the largest frame is an entry, and no log takes a larger entry
	frameHeader = 4 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Fields of the head of a backup in protobuf's wire format.
const (
	fieldTopology = 1 + iota
	fieldGroup
	fieldGroupNumber
	fieldNode
	fieldAt
	fieldAtTerm
	fieldLast
	fieldLastTerm
	fieldBytes
	fieldBackupMembers
)

func (i *Image) appendHead(b []byte) []byte {
	texts, numbers := i.fields()
	for _, f := range texts {
		b = protowire.AppendString(protowire.AppendTag(b, f.number, protowire.BytesType), *f.v)
	}
	for _, f := range numbers {
		b = protowire.AppendVarint(protowire.AppendTag(b, f.number, protowire.VarintType), *f.v)
	}
	return protowire.AppendBytes(protowire.AppendTag(b, fieldBackupMembers, protowire.BytesType), appendMembers(nil, i.Members))
}

// field is a field of the head.
type field[T any] struct {
	number protowire.Number
	v      *T
}

func (i *Image) fields() (texts []field[string], numbers []field[uint64]) {
	return []field[string]{{fieldTopology, &i.Topology}, {fieldGroup, &i.Group}, {fieldNode, &i.Node}}, []field[uint64]{
		{fieldGroupNumber, &i.GroupID}, {fieldAt, &i.Index}, {fieldAtTerm, &i.Term},
		{fieldLast, &i.Last}, {fieldLastTerm, &i.LastTerm}, {fieldBytes, &i.bytes},
	}
}

// readHead reads the output of appendHead: each field, in order.
func (i *Image) readHead(b []byte) error {
	texts, numbers := i.fields()
	consume := func(number protowire.Number, kind protowire.Type) bool {
		n, k, size := protowire.ConsumeTag(b)
		if size < 0 || n != number || k != kind {
			return false
		}
		b = b[size:]
		return true
	}
	for _, f := range texts {
		if !consume(f.number, protowire.BytesType) {
			return errBackupHead
		}
		v, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return errBackupHead
		}
		*f.v, b = string(v), b[n:]
	}
	for _, f := range numbers {
		if !consume(f.number, protowire.VarintType) {
			return errBackupHead
		}
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return errBackupHead
		}
		*f.v, b = v, b[n:]
	}
	if !consume(fieldBackupMembers, protowire.BytesType) {
		return errBackupHead
	}
	v, n := protowire.ConsumeBytes(b)
	if n < 0 || n != len(b) || i.Index == 0 || i.Term == 0 || i.Last < i.Index || i.LastTerm < i.Term || i.bytes > wal.SnapshotBodyMax {
		return errBackupHead
	}
	var err error
	if i.Members, err = readMembers(v); err != nil {
		return errBackupHead
	}
	return nil
}

var errBackupHead = fmt.Errorf("%w: its head is damaged", ErrImage)

// frames writes frames.
type frames struct {
	w   io.Writer
	crc hash.Hash32
}

func (f *frames) put(data []byte) error {
	_, _ = f.crc.Write(data) // never fails
	var h [frameHeader]byte
	binary.LittleEndian.PutUint32(h[:], uint32(len(data)))
	binary.LittleEndian.PutUint32(h[4:], f.crc.Sum32())
	if _, err := f.w.Write(h[:]); err != nil {
		return err
	}
	_, err := f.w.Write(data)
	return err
}

// WriteTo writes a backup.
func (i *Image) WriteTo(w io.Writer) (n int64, err error) {
	c := &counter{w: w}
	_, err = io.WriteString(c, backupTitle)
	f := &frames{c, crc32.New(castagnoli)}
	if err == nil {
		err = f.put(i.appendHead(nil))
	}
	if err == nil {
		err = i.putState(f)
	}
	if err == nil {
		err = i.entries(func(e *pb.Entry) error {
			b, err := proto.Marshal(e)
			if err != nil {
				return err
			}
			return f.put(b)
		})
	}
	if err == nil {
		err = f.put(nil)
	}
	return c.n, err
}

// counter counts the bytes that are written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (i *Image) putState(f *frames) error {
	state, err := i.state()
	if err != nil {
		return err
	}
	defer func() { _ = state.Close() }() // it is read to its end
	chunk := make([]byte, backupChunk)
	for {
		n, err := io.ReadFull(state, chunk)
		if n > 0 {
			if err := f.put(chunk[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return f.put(nil)
		case err != nil:
			return err
		}
	}
}

// frameReader reads frames and checks their checksums.
type frameReader struct {
	r   *bufio.Reader
	crc hash.Hash32
	at  int64 // offset of the next frame
	buf []byte
}

func (f *frameReader) next() ([]byte, error) {
	damaged := func(why string) error { return fmt.Errorf("%w: at offset %d %s", ErrImage, f.at, why) }
	var h [frameHeader]byte
	if _, err := io.ReadFull(f.r, h[:]); err != nil {
		return nil, damaged("it ends")
	}
	n := binary.LittleEndian.Uint32(h[:])
	if n > backupMax {
		return nil, damaged(fmt.Sprintf("is a frame of %d bytes, and the limit is %d", n, backupMax))
	}
	data, err := f.read(int(n))
	if err != nil {
		return nil, damaged("it ends")
	}
	_, _ = f.crc.Write(data) // never fails
	if f.crc.Sum32() != binary.LittleEndian.Uint32(h[4:]) {
		return nil, damaged("the checksum does not match the data")
	}
	f.at += frameHeader + int64(n)
	return data, nil
}

// read reads n bytes. It allocates at most twice what the file has, plus one chunk, whatever length
// a damaged frame announces.
func (f *frameReader) read(n int) ([]byte, error) {
	data := f.buf[:0]
	for len(data) < n {
		if len(data) == cap(data) {
			data = slices.Grow(data, min(n-len(data), max(len(data), backupChunk)))
		}
		m, err := io.ReadFull(f.r, data[len(data):min(n, cap(data))])
		data = data[:len(data)+m]
		if err != nil {
			return nil, err
		}
	}
	f.buf = data
	return data, nil
}

// OpenBackup reads and checks a whole backup. The file stays open until Close.
func OpenBackup(path string) (_ *Image, err error) {
	file, _, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	i := &Image{close: file.Close}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", path, errors.Join(err, file.Close()))
		}
	}()
	if _, err := i.open(file); err != nil {
		return nil, err
	}
	states, entries := int64(0), uint64(0)
	i.state = func() (io.ReadCloser, error) { return i.readState(file) }
	i.entries = func(visit func(*pb.Entry) error) error { return i.readEntries(file, visit) }
	state, err := i.state()
	if err != nil {
		return nil, err
	}
	if states, err = io.Copy(io.Discard, state); err != nil {
		return nil, err
	}
	last := i.Index
	if err := i.entries(func(e *pb.Entry) error {
		if last++; e.GetIndex() != last || e.GetTerm() == 0 || e.GetTerm() > i.LastTerm {
			return fmt.Errorf("%w: entry %d of term %d follows entry %d", ErrImage, e.GetIndex(), e.GetTerm(), last-1)
		}
		entries++
		return nil
	}); err != nil {
		return nil, err
	}
	if uint64(states) != i.bytes || entries != i.Last-i.Index {
		return nil, fmt.Errorf("%w: it holds %d bytes of state and %d entries, but its head says %d and %d", ErrImage, states, entries, i.bytes, i.Last-i.Index)
	}
	return i, nil
}

// open reads the title and the head of a backup.
func (i *Image) open(file *os.File) (*frameReader, error) {
	f := &frameReader{r: bufio.NewReaderSize(io.NewSectionReader(file, 0, 1<<62), backupChunk), crc: crc32.New(castagnoli), at: int64(len(backupTitle))}
	title := make([]byte, len(backupTitle))
	if _, err := io.ReadFull(f.r, title); err != nil || string(title) != backupTitle {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrImage, backupTitle)
	}
	b, err := f.next()
	if err != nil {
		return nil, err
	}
	return f, i.readHead(b)
}

func (i *Image) readState(file *os.File) (io.ReadCloser, error) {
	f, err := i.open(file)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(&stateReader{f: f}), nil
}

// stateReader reads the state of a backup.
type stateReader struct {
	f    *frameReader
	rest []byte
	err  error
}

func (s *stateReader) Read(p []byte) (int, error) {
	if len(s.rest) == 0 && s.err == nil {
		if s.rest, s.err = s.f.next(); s.err == nil && len(s.rest) == 0 {
			s.err = io.EOF
		}
	}
	if len(s.rest) == 0 {
		return 0, s.err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (i *Image) readEntries(file *os.File, visit func(*pb.Entry) error) error {
	f, err := i.open(file)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, &stateReader{f: f}); err != nil {
		return err
	}
	for {
		b, err := f.next()
		if err != nil {
			return err
		}
		if len(b) == 0 {
			break
		}
		e := new(pb.Entry)
		if err := proto.Unmarshal(b, e); err != nil {
			return fmt.Errorf("%w: an entry: %w", ErrImage, err)
		}
		if err := visit(e); err != nil {
			return err
		}
	}
	if _, err := f.r.ReadByte(); err != io.EOF {
		return fmt.Errorf("%w: data follows its end", ErrImage)
	}
	return nil
}
