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

	"github.com/topogen/topogen/runtime/internal/regular"
)

// The engine syncs after each save of entries, or never. In the modes Interval and None it
// never syncs. Then this package opens the engine's files by name and syncs them.

// activeSegment syncs the segment that the engine writes to. The lock of the log guards all
// fields except busy.
type activeSegment struct {
	dir    string
	file   *os.File // the last segment; open since the segment was started, so that a sync reports every write error
	seq    uint64   // number of the segment
	opened uint64   // the number of the last segment when the engine opened the log
	bytes  int64    // an upper bound of the bytes in the segment
	dirty  bool     // something was written since the last sync
	fsync  func(*os.File) error

	busy sync.Mutex // held while file is synced or closed
}

// flushToSystem passes the saved data to the operating system, so that a kill of the process
// does not lose it.
func (l *fileLog) flushToSystem() error {
	l.active.dirty = true
	return l.wal.Sync() // in these modes it flushes buffers, but does not sync
}

// addBytes counts the bytes of records that the engine has received; size is an upper bound.
// If the engine has started a new segment, addBytes switches to it. The engine starts a
// segment after the records of a call, so all earlier records are in earlier segments.
func (l *fileLog) addBytes(size int64) error {
	if l.active.bytes += size; l.options.Sync == Always || l.active.bytes < etcdwal.SegmentSizeBytes {
		return nil
	}
	if _, err := os.Lstat(l.active.nextPath()); !errors.Is(err, os.ErrNotExist) { // the engine has not started the next segment yet
		return err
	}
	if _, err := l.active.advance(); err != nil {
		return err
	}
	l.marks.noteSynced(l.marks.count)
	return l.active.prepare()
}

// bytesMax returns an upper bound of the bytes that the entries and a state take.
func bytesMax(entries []*raftpb.Entry) int64 {
	n := frameMax(stateMax)
	for _, e := range entries {
		n += frameMax(2 + 3 + varintBytes(e.GetTerm()) + varintBytes(e.GetIndex()) + 1 + varintBytes(uint64(len(e.Data))) + len(e.Data))
	}
	return n
}

// recordOverhead is the maximal number of bytes of a record in addition to its data and the
// length of the data: type, checksum, tag and padding.
const recordOverhead = 2 + 6 + 1 + 7

// frameMax returns the maximal size of a frame with data of the given size.
func frameMax(data int) int64 {
	return int64(wordBytes + recordOverhead + varintBytes(uint64(data)) + data)
}

// headMax is the maximal size of the head of a segment, in bytes.
const headMax = 3*nameMax + 256

func varintBytes(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// nextPath returns the path that the next segment has until the engine starts it.
func (a *activeSegment) nextPath() string {
	return filepath.Join(a.dir, fmt.Sprintf("%d.tmp", (a.seq-a.opened)%2))
}

// advance switches to the last segment, if there is a new one, and syncs the segments before
// it. It reports whether there was a new one.
func (a *activeSegment) advance() (next bool, err error) {
	all, err := segments(a.dir)
	if err != nil {
		return false, err
	}
	for _, s := range all {
		if a.file != nil && s.seq <= a.seq {
			continue
		}
		file, _, err := regular.OpenOwn(s.path, os.O_RDWR)
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

// prepare makes the length of the next segment durable before the segment gets its name.
// Otherwise a power failure could leave a shorter segment, which counts as damage. In the
// modes Interval and None the engine does not sync the length. It creates this file in
// advance, or uses an existing one.
func (a *activeSegment) prepare() error {
	file, _, err := regular.OpenOwn(a.nextPath(), os.O_WRONLY|os.O_CREATE)
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

// flush makes all saved data durable.
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

// checkDirectory returns an error if the directory of the log was removed, moved or replaced.
// The operating system still writes and syncs the open files then, but the next start would
// not find them. The check takes about a microsecond, much less than a sync.
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

// syncAtIntervals syncs saved data at each interval. It does not block calls of the log.
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

// syncInBackground syncs without locking the log during the sync. After an
// error all later calls of the log fail.
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
