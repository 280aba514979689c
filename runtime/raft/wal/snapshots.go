package wal

import (
	"errors"
	"fmt"
	"hash/crc32"
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

// read reads the snapshot, {uint32 crc = 1; bytes data = 2}, as strictly as it is
// written.
func (f snapshotFile) read() (*raftpb.Snapshot, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	damaged := func(offset int, format string, args ...any) error {
		return &DamageError{File: f.path, Offset: int64(offset), Reason: fmt.Sprintf(format, args...)}
	}
	if !info.Mode().IsRegular() || info.Size() > snapshotMax {
		return nil, damaged(0, "it is no file of a snapshot")
	}
	b, err := os.ReadFile(f.path)
	if err != nil {
		return nil, err
	}
	var crc [1]uint64
	data, ok := parseFields(b, crc[:], 1, true)
	if !ok || crc[0] > math.MaxUint32 {
		return nil, damaged(0, "its head is not one of a snapshot of %d bytes", len(b))
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
