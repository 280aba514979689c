package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/internal/regular"
)

// snapshotsKept is the number of snapshots that a log keeps. If the newest one is damaged,
// an operator can remove it: the log has the older one and all entries since then.
const snapshotsKept = 2

const snapshotSuffix = ".snap"

// snapshotFile is the file of a snapshot.
type snapshotFile struct {
	path string
	at   position
}

func snapshotPath(dir string, at position) string {
	return filepath.Join(dir, fmt.Sprintf("%016x-%016x%s", at.term, at.index, snapshotSuffix))
}

// snapshotFiles lists the files of snapshots, the oldest first.
func snapshotFiles(dir string) ([]snapshotFile, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []snapshotFile
	for _, e := range entries {
		f := snapshotFile{path: filepath.Join(dir, e.Name())}
		if !strings.HasSuffix(e.Name(), snapshotSuffix) {
			continue
		}
		if _, err := fmt.Sscanf(e.Name(), "%016x-%016x"+snapshotSuffix, &f.at.term, &f.at.index); err == nil && snapshotPath(dir, f.at) == f.path {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b snapshotFile) int {
		if a.at.index < b.at.index || a.at.index == b.at.index && a.at.term < b.at.term {
			return -1
		}
		return 1
	})
	return all, nil
}

// snapshotMax bounds the file of a snapshot without a body, in bytes. Protobuf's libraries
// have the same limit.
const snapshotMax = math.MaxInt32

// snapshotHeadMax is the maximal number of bytes before the data in a snapshot file: two
// tags and two numbers.
const snapshotHeadMax = 2 * (1 + binary.MaxVarintLen64)

// writeSnapshot writes the file of a snapshot without a body, in the format of the engine. The
// engine would write a file that all users can read.
func writeSnapshot(path string, s *raftpb.Snapshot, fsync func(*os.File) error) error {
	data, err := proto.Marshal(s)
	if err != nil {
		return err
	}
	b := protowire.AppendVarint([]byte{1 << 3}, uint64(crc32.Checksum(data, castagnoli)))
	b = protowire.AppendBytes(append(b, 2<<3|2), data)
	file, err := regular.CreateNew(path + ".tmp")
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	if err == nil {
		err = fsync(file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(path+".tmp", path), syncDir(filepath.Dir(path)))
}

// snapshotHead returns the checksum and the length of the header of a snapshot file. b is the
// beginning of the file. The data must end at the end of the file.
func snapshotHead(b []byte, size int64) (sum uint64, head int, ok bool) {
	if len(b) == 0 || b[0] != 1<<3 {
		return 0, 0, false
	}
	sum, n, err := parseVarint(b[1:])
	if err != nil || sum > math.MaxUint32 {
		return 0, 0, false
	}
	data := b[1+n:]
	if len(data) == 0 || data[0] != 2<<3|2 {
		return 0, 0, false
	}
	length, m, err := parseVarint(data[1:])
	head = 1 + n + 1 + m
	return sum, head, err == nil && length == uint64(size)-uint64(head)
}

// SnapshotReader reads a snapshot. The head is in Snapshot, and Read streams the body. It
// can be used even after a newer snapshot has replaced this one.
type SnapshotReader struct {
	Snapshot *raftpb.Snapshot // the head, as it was saved
	Size     int64            // bytes of the body; -1: SaveSnapshot saved the snapshot, and its state is in Snapshot.Data
	body     io.ReadCloser
}

// Read reads the body. It checks the bytes before it returns them; if they differ from the
// written ones, it returns a [DamageError]. A snapshot without a body returns io.EOF.
func (r *SnapshotReader) Read(p []byte) (int, error) {
	if r.body == nil {
		return 0, io.EOF
	}
	return r.body.Read(p)
}

// Close closes the snapshot file.
func (r *SnapshotReader) Close() error {
	if r.body == nil {
		return nil
	}
	return r.body.Close()
}

// open opens a snapshot with or without a body.
func (f snapshotFile) open() (*SnapshotReader, error) {
	file, info, err := openFile(f.path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	magic := make([]byte, min(info.Size(), int64(len(bodyMagic))))
	var r *SnapshotReader
	if _, err = file.ReadAt(magic, 0); err == nil && string(magic) == bodyMagic {
		r, err = f.readHead(file, info.Size())
	} else if err == nil {
		r, err = f.read(file, info.Size())
	}
	if err == nil && positionOf(r.Snapshot) != f.at {
		err = &DamageError{File: f.path, Reason: fmt.Sprintf("the snapshot must be at index %d of term %d, got index %d of term %d", f.at.index, f.at.term, positionOf(r.Snapshot).index, positionOf(r.Snapshot).term)}
	}
	if err != nil || r.body == nil {
		_ = file.Close() // nothing was written to it
	}
	return r, err
}

// read reads a snapshot without a body, {uint32 crc = 1; bytes data = 2}. It accepts exactly
// one encoding.
//
// The rest of the file may be sparse, so read checks it before it allocates memory of its size.
func (f snapshotFile) read(file io.ReaderAt, size int64) (*SnapshotReader, error) {
	damaged := func(offset int, format string, args ...any) error {
		return &DamageError{File: f.path, Offset: int64(offset), Reason: fmt.Sprintf(format, args...)}
	}
	if size > snapshotMax {
		return nil, damaged(0, "the file must have at most %d bytes, got %d", snapshotMax, size)
	}
	b := make([]byte, min(size, snapshotHeadMax))
	if _, err := file.ReadAt(b, 0); err != nil {
		return nil, err
	}
	sum, head, ok := snapshotHead(b, size)
	if !ok {
		return nil, damaged(0, "the head does not match a snapshot of %d bytes", size)
	}
	check := crc32.New(castagnoli)
	if _, err := io.Copy(check, io.NewSectionReader(file, int64(head), size-int64(head))); err != nil {
		return nil, err
	}
	if got := check.Sum32(); uint64(got) != sum {
		return nil, damaged(head, "the checksum must be %08x, got %08x", sum, got)
	}
	data := make([]byte, size-int64(head))
	if _, err := file.ReadAt(data, int64(head)); err != nil {
		return nil, err
	}
	if got := crc32.Checksum(data, castagnoli); uint64(got) != sum { // the second read may differ on a broken disk
		return nil, damaged(head, "the checksum must be %08x, got %08x", sum, got)
	}
	s := new(raftpb.Snapshot)
	if err := proto.Unmarshal(data, s); err != nil {
		return nil, damaged(head, "%v", err)
	}
	return &SnapshotReader{Snapshot: s, Size: -1}, nil
}

// verify reads the whole snapshot, and returns the size of its state in bytes.
func (f snapshotFile) verify() (int64, error) {
	r, err := f.open()
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, r)
	if r.Size < 0 {
		n = int64(len(r.Snapshot.GetData()))
	}
	return n, errors.Join(err, r.Close())
}
