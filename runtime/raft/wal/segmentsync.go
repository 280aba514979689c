package wal

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
)

// The engine syncs whenever entries are saved, or, told so, never. In the modes
// Interval and None it does not, and this log syncs the engine's files: by name,
// through descriptors of its own.

// activeSegment syncs the segments that are written to. Its fields but the last are
// guarded by the log's lock.
type activeSegment struct {
	dir    string
	file   *os.File // of the last segment; from its beginning, so that no error of the system's is missed
	seq    uint64   // its number
	opened uint64   // the number of the last segment when the engine opened the log
	bytes  int64    // not less than what the segment holds
	dirty  bool     // something was written since the last sync
	fsync  func(*os.File) error

	busy sync.Mutex // held while file is synced or closed
}

// written has what was saved leave the process: a kill of it then loses nothing.
func (l *fileLog) flushToSystem() error {
	l.active.dirty = true
	return l.wal.Sync() // which does not sync
}

// grown notes that the engine was given records of so many bytes at most, and goes on
// to the next segment where it has begun one. It does that behind records: all that it
// was given before is in the segments before.
func (l *fileLog) addBytes(size int64) error {
	if l.active.bytes += size; l.options.Sync == Always || l.active.bytes < etcdwal.SegmentSizeBytes {
		return nil
	}
	if _, err := os.Lstat(l.active.nextPath()); !errors.Is(err, os.ErrNotExist) { // it is not taken yet
		return err
	}
	if _, err := l.active.advance(); err != nil {
		return err
	}
	l.marks.noteSynced(l.marks.count)
	return l.active.prepare()
}

// bytesMax is how many bytes the entries and a state take, at most.
func bytesMax(entries []*raftpb.Entry) int64 {
	n := frameMax(stateMax)
	for _, e := range entries {
		n += frameMax(2 + 3 + varintBytes(e.GetTerm()) + varintBytes(e.GetIndex()) + 1 + varintBytes(uint64(len(e.Data))) + len(e.Data))
	}
	return n
}

// recordOverhead is what a record takes besides its data and the length of that:
// type, checksum, tag and padding.
const recordOverhead = 2 + 6 + 1 + 7

// frameMax is how many bytes a record with data of that size takes, at most.
func frameMax(data int) int64 {
	return int64(wordBytes + recordOverhead + varintBytes(uint64(data)) + data)
}

// headMax is what the head of a segment takes, at most.
const headMax = 3*nameMax + 256

func varintBytes(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// nextPath is the name that the engine gives to the file of the next segment until it
// begins.
func (a *activeSegment) nextPath() string {
	return filepath.Join(a.dir, fmt.Sprintf("%d.tmp", (a.seq-a.opened)%2))
}

// follow goes on to the last segment, if there is a new one. Those before are synced.
func (a *activeSegment) advance() (next bool, err error) {
	all, err := segments(a.dir)
	if err != nil {
		return false, err
	}
	for _, s := range all {
		if a.file != nil && s.seq <= a.seq {
			continue
		}
		file, err := os.OpenFile(s.path, os.O_RDWR, 0)
		if err != nil {
			return false, err
		}
		if a.file != nil {
			if err := errors.Join(a.sync(), a.close()); err != nil {
				return false, errors.Join(err, file.Close())
			}
		}
		a.file, a.seq, a.bytes, next = file, s.seq, headMax, true
	}
	return next, nil
}

// prepare makes the length of the next segment durable, before it has its name. The
// engine does not, in the modes that come here, and a power failure could leave the
// segment shorter: that would be damage. The engine makes this file beforehand, or uses it if it is there.
func (a *activeSegment) prepare() error {
	file, err := os.OpenFile(a.nextPath(), os.O_WRONLY|os.O_CREATE, fileutil.PrivateFileMode)
	if err != nil {
		return err
	}
	return errors.Join(fileutil.Preallocate(file, etcdwal.SegmentSizeBytes, true), a.fsync(file), file.Close())
}

func (a *activeSegment) sync() error {
	a.busy.Lock()
	defer a.busy.Unlock()
	return a.fsync(a.file)
}

func (a *activeSegment) close() error {
	a.busy.Lock()
	defer a.busy.Unlock()
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

// flush makes durable all that was saved.
func (l *fileLog) flush() error {
	if err := l.wal.Sync(); err != nil {
		return err
	}
	if l.options.Sync != Always {
		l.active.dirty = false
		if _, err := l.active.advance(); err != nil {
			return err
		}
		if err := l.active.sync(); err != nil {
			return err
		}
	}
	if err := l.checkDirectory(); err != nil {
		return err
	}
	l.marks.noteSynced(l.marks.count)
	return nil
}

// checkDirectory reports whether the directory of the log was removed, moved or replaced. The
// system goes on to write and sync files that have no name any more, and the next start
// would not find them. A look costs about a microsecond, much less than a sync.
func (l *fileLog) checkDirectory() error {
	path := filepath.Join(l.dir, lockName)
	own, err := l.lock.Stat()
	if err != nil {
		return err
	}
	if found, err := os.Stat(path); err != nil || !os.SameFile(own, found) {
		return fmt.Errorf("wal: the directory of the log, %s, was removed, moved or replaced while the log was open", l.dir)
	}
	return nil
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
			l.syncInBackground()
		}
	}
}

// syncInBackground syncs without keeping the log. Its error is that of the next call.
func (l *fileLog) syncInBackground() {
	var file *os.File
	var saved uint64
	err := l.do(func() error {
		if !l.active.dirty {
			return nil
		}
		l.active.dirty = false
		file, saved = l.active.file, l.marks.count
		l.active.busy.Lock()
		return nil
	})
	if err != nil || file == nil {
		return
	}
	err = errors.Join(l.active.fsync(file), l.checkDirectory())
	l.active.busy.Unlock()
	_ = l.do(func() error {
		if err == nil {
			l.marks.noteSynced(saved)
		}
		return err
	})
}

func fdatasync(f *os.File) error { return fileutil.Fdatasync(f) }
