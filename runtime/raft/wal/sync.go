package wal

import (
	"errors"
	"math/bits"
	"os"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
)

// The engine syncs whenever entries are saved, or, told so, never. In the modes
// Interval and None it does not, and this log syncs the engine's files: by name,
// through descriptors of its own.

// tailSync syncs the segments that are written to. Its fields but the last are
// guarded by the log's lock.
type tailSync struct {
	dir   string
	file  *os.File // of the last segment; from its beginning, so that no error of the system's is missed
	seq   uint64   // its number
	bytes int64    // not less than what the segment holds
	dirty bool     // something was written since the last sync
	fsync func(*os.File) error

	busy sync.Mutex // held while file is synced or closed
}

// written has what was saved leave the process: a kill of it then loses nothing.
func (l *fileLog) written(entries []*raftpb.Entry) error {
	if err := l.wal.Sync(); err != nil { // which does not sync
		return err
	}
	l.tail.dirty = true
	l.tail.bytes += bytesMax(entries)
	if l.tail.bytes < etcdwal.SegmentSizeBytes {
		return nil
	}
	return l.tail.follow()
}

// bytesMax is how many bytes a state and the entries take, at most.
func bytesMax(entries []*raftpb.Entry) int64 {
	const number = 1 + 10 // a field that is a number
	n := int64(wordBytes + recordOverhead + 3*number)
	for _, e := range entries {
		size := 3 + varintBytes(e.GetTerm()) + varintBytes(e.GetIndex()) + 2*(1+varintBytes(uint64(len(e.Data)))) + len(e.Data)
		n += int64(wordBytes + recordOverhead + 2 + size)
	}
	return n
}

// recordOverhead is what a record takes besides its data and the length of that:
// type, checksum, tag and padding.
const recordOverhead = 2 + 6 + 1 + 7

// headMax is what the head of a segment takes, at most.
const headMax = 2*nameMax + 256

func varintBytes(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// follow goes on to the last segment, if there is a new one. Those before are
// synced first: so a crash may leave a new segment empty, and not a gap.
func (t *tailSync) follow() error {
	all, err := segments(t.dir)
	if err != nil {
		return err
	}
	for _, s := range all {
		if t.file != nil && s.seq <= t.seq {
			continue
		}
		file, err := os.OpenFile(s.path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if t.file != nil {
			if err := errors.Join(t.sync(), t.close()); err != nil {
				return errors.Join(err, file.Close())
			}
		}
		t.file, t.seq, t.bytes = file, s.seq, headMax
	}
	return nil
}

func (t *tailSync) sync() error {
	t.busy.Lock()
	defer t.busy.Unlock()
	return t.fsync(t.file)
}

func (t *tailSync) close() error {
	t.busy.Lock()
	defer t.busy.Unlock()
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// flush makes durable all that was saved.
func (l *fileLog) flush() error {
	if err := l.wal.Sync(); err != nil || l.options.Sync == Always {
		return err
	}
	l.tail.dirty = false
	if err := l.tail.follow(); err != nil {
		return err
	}
	return l.tail.sync()
}

// syncAtIntervals syncs what was saved. Calls go on meanwhile.
func (l *fileLog) syncAtIntervals() {
	defer close(l.stopped)
	ticker := time.NewTicker(l.options.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
			l.syncAside()
		}
	}
}

// syncAside syncs without keeping the log. Its error is that of the next call.
func (l *fileLog) syncAside() {
	var file *os.File
	err := l.do(func() error {
		if !l.tail.dirty {
			return nil
		}
		l.tail.dirty = false
		if err := l.tail.follow(); err != nil {
			return err
		}
		file = l.tail.file
		l.tail.busy.Lock()
		return nil
	})
	if err != nil || file == nil {
		return
	}
	err = l.tail.fsync(file)
	l.tail.busy.Unlock()
	if err != nil {
		_ = l.do(func() error { return err })
	}
}

func fdatasync(f *os.File) error { return fileutil.Fdatasync(f) }
