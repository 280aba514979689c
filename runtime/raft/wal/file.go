package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
)

// fileLog is a log in files. It writes through etcd's log, called the engine.
type fileLog struct {
	dir     string
	options Options
	lock    *dirLock

	mu        sync.Mutex
	wal       *etcdwal.WAL
	summary   summary
	marks     markWriter
	snapshots []position // snapshots that have a file, the oldest first
	entries   []*raftpb.Entry
	active    activeSegment // used in all modes except Always
	err       error         // of the first failed call; later calls return it

	committing sync.Mutex // held from before a snapshot becomes the newest until obsolete files are removed; locked before mu

	stop    chan struct{} // closed by Close, in mode Interval
	stopped chan struct{}
}

func newFileLog(dir string, o Options, lock *dirLock) *fileLog {
	return &fileLog{
		dir: dir, options: o, lock: lock,
		active: activeSegment{dir: filepath.Join(dir, segmentsDir)},
	}
}

// start starts the syncs of the mode. The caller has synced all data in the log.
func (l *fileLog) start() error {
	l.active.opened = l.active.seq
	if l.options.Sync == Always { // the engine syncs
		return nil
	}
	if l.options.Sync == Interval {
		l.stop, l.stopped = make(chan struct{}), make(chan struct{})
		go l.syncAtIntervals()
	}
	return l.active.prepare()
}

func (l *fileLog) Save(state *raftpb.HardState, entries []*raftpb.Entry, sync bool) error {
	return l.do(func() error {
		b, err := newBatch(&l.summary, state, entries)
		if err != nil {
			return err
		}
		if err := l.save(b, sync); err != nil {
			return err
		}
		l.summary.add(b)
		return nil
	})
}

// save writes, in this order, a state with a mark, the entries, and the state with a commit
// index that includes the entries.
func (l *fileLog) save(b batch, sync bool) error {
	before := b.stateBefore()
	if before != l.summary.state || len(b.entries) > 0 {
		if before == (hardState{}) { // the engine does not write an empty state; initialState would add the same term
			before.term = b.entries[0].GetTerm()
		}
		if err := l.saveState(before); err != nil {
			return err
		}
	}
	if err := l.saveEntries(b, before); err != nil {
		return err
	}
	switch {
	case l.options.Sync != Always:
		return l.flushToSystem()
	case len(b.entries) == 0 && !sync:
		return nil
	case len(b.entries) == 0: // the engine syncs only if there are entries
		if err := l.wal.Sync(); err != nil {
			return err
		}
	}
	if err := l.checkDirectory(); err != nil {
		return err
	}
	l.marks.noteSynced(l.marks.count)
	return nil
}

// saveEntries writes the entries, and then the state if it differs from the state before
// them.
func (l *fileLog) saveEntries(b batch, before hardState) error {
	n := len(b.entries)
	if n == 0 {
		return nil
	}
	var after *raftpb.HardState // the state after the entries
	if before != b.state && b.state != (hardState{}) {
		after = b.state.proto() // without a mark: nothing was synced since the mark before the entries
	}
	if err := l.wal.Save(after, l.withData(b.entries)); err != nil {
		return err
	}
	l.marks.noteWritten(n)
	if after != nil {
		l.marks.noteWritten(1)
	}
	return l.addBytes(bytesMax(b.entries))
}

// withData returns the entries with a data field in each; see entryRecord.
func (l *fileLog) withData(entries []*raftpb.Entry) []*raftpb.Entry {
	clear(l.entries)
	l.entries = append(l.entries[:0], entries...)
	for i, e := range l.entries {
		if e.Data == nil {
			l.entries[i] = &raftpb.Entry{Type: e.Type, Term: e.Term, Index: e.Index, Data: []byte{}}
		}
	}
	return l.entries
}

func (l *fileLog) SaveSnapshot(s *raftpb.Snapshot) error {
	return l.saveSnapshot(s, func(at position) error {
		return writeSnapshot(snapshotPath(filepath.Join(l.dir, snapshotDir), at), s, l.active.fsync)
	})
}

// saveSnapshot makes a snapshot the newest one. The function file makes its file durable
// under its final name.
func (l *fileLog) saveSnapshot(s *raftpb.Snapshot, file func(position) error) error {
	l.committing.Lock()
	defer l.committing.Unlock()
	var old obsoleteFiles
	err := l.do(func() error {
		at, err := checkSnapshot(&l.summary, s)
		if err != nil || at == l.summary.base {
			return err
		}
		if err := file(at); err != nil {
			return err
		}
		members := raftpb.EnsureConfState(proto.CloneOf(s.GetMetadata().GetConfState()))
		record := &walpb.Snapshot{Index: &at.index, Term: &at.term, ConfState: members}
		if err := l.wal.SaveSnapshot(record); err != nil {
			return err
		}
		l.marks.noteWritten(1)
		if err := l.addBytes(frameMax(proto.Size(record))); err != nil {
			return err
		}
		state := l.summary.state.afterSnapshot(at)
		if err := l.saveState(state); err != nil { // not earlier: without the snapshot it would commit the entries that the snapshot replaces
			return err
		}
		if err := l.flush(); err != nil {
			return err
		}
		l.summary.state = state
		l.summary.snapshot(at, true)
		l.snapshots = append(l.snapshots, at)
		old, err = l.releaseObsolete()
		return err
	})
	if err == nil {
		l.removeObsolete(old)
	}
	return err
}

func containsPosition(all []position, at position) bool {
	for _, p := range all {
		if p == at {
			return true
		}
	}
	return false
}

func (l *fileLog) Sync() error { return l.do(l.flush) }

func (l *fileLog) Close() error {
	l.committing.Lock()
	defer l.committing.Unlock()
	l.mu.Lock()
	if errors.Is(l.err, ErrClosed) {
		l.mu.Unlock()
		return nil
	}
	err := l.err
	if err == nil {
		if err = l.flush(); err == nil {
			l.markEnd()
		}
	}
	l.err = ErrClosed
	err = errors.Join(err, l.wal.Close(), l.active.close(), l.lock.Close())
	l.mu.Unlock()
	if l.stop != nil {
		close(l.stop)
		<-l.stopped
	}
	return err
}

// do calls f unless the log has failed, and stores its error.
func (l *fileLog) do(f func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	began := time.Now()
	err := f()
	if took := time.Since(began); took > slow {
		l.options.Logger.Warn("the disk is slow", "log", l.dir, "took", took)
	}
	if err != nil && !errors.Is(err, ErrInvalid) {
		l.err = fmt.Errorf("%w: %w", ErrFailed, err)
		return l.err
	}
	return err
}

// slow is the duration above which a call is logged. On a healthy disk no call takes that
// long.
const slow = time.Second

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
