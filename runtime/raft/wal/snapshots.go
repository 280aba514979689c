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

	"google.golang.org/protobuf/proto"

	"go.etcd.io/raft/v3/raftpb"
)

// snapshotsKept is how many snapshots stay: where the newest is damaged, whoever
// removes it by hand has the older one and all entries since.
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

// snapshotMax bounds what is read of a snapshot's file. Protobuf's libraries have
// the same limit.
const snapshotMax = math.MaxInt32

// snapshotHeadMax is what precedes the data in a snapshot's file, at most: two tags
// and two numbers.
const snapshotHeadMax = 2 * (1 + binary.MaxVarintLen64)

// snapshotHead reports whether what the file begins with says that its data go to the
// end of the file.
func snapshotHead(b []byte, size int64) bool {
	if len(b) == 0 || b[0] != 1<<3 {
		return false
	}
	_, n, err := parseVarint(b[1:])
	if err != nil {
		return false
	}
	data := b[1+n:]
	if len(data) == 0 || data[0] != 2<<3|2 {
		return false
	}
	length, m, err := parseVarint(data[1:])
	return err == nil && length == uint64(size)-uint64(1+n+1+m)
}

// read reads the snapshot, {uint32 crc = 1; bytes data = 2}, as strictly as it is
// written.
func (f snapshotFile) read() (*raftpb.Snapshot, error) {
	file, info, err := openFile(f.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	damaged := func(offset int, format string, args ...any) error {
		return &DamageError{File: f.path, Offset: int64(offset), Reason: fmt.Sprintf(format, args...)}
	}
	size := info.Size()
	if size > snapshotMax {
		return nil, damaged(0, "it has %d bytes; a snapshot has at most %d", size, snapshotMax)
	}
	b := make([]byte, min(size, snapshotHeadMax))
	if _, err := io.ReadFull(file, b); err != nil {
		return nil, err
	}
	if !snapshotHead(b, size) { // the rest may be a hole, and is not read for nothing
		return nil, damaged(0, "its head is not one of a snapshot of %d bytes", size)
	}
	b = slices.Grow(b, int(size)-len(b))[:size]
	if _, err := io.ReadFull(file, b[min(size, snapshotHeadMax):]); err != nil {
		return nil, err
	}
	var crc [1]uint64
	data, ok := parseFields(b, crc[:], 1, true)
	if !ok || crc[0] > math.MaxUint32 {
		return nil, damaged(0, "its head is not one of a snapshot of %d bytes", size)
	}
	head := len(b) - len(data)
	if got := crc32.Checksum(data, castagnoli); uint64(got) != crc[0] {
		return nil, damaged(head, "the checksum is %08x, that of what is there %08x", crc[0], got)
	}
	s := new(raftpb.Snapshot)
	if err := proto.Unmarshal(data, s); err != nil {
		return nil, damaged(head, "%v", err)
	}
	if positionOf(s) != f.at {
		return nil, damaged(head, "it is the snapshot at index %d of term %d", positionOf(s).index, positionOf(s).term)
	}
	return s, nil
}
