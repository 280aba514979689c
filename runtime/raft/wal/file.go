package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
)

// fileLog is a log in files, on the engine's.
type fileLog struct {
	dir         string
	options     Options
	lock        *fileutil.LockedFile
	snapshotter *snap.Snapshotter

	mu      sync.Mutex
	wal     *etcdwal.WAL
	shape   shape
	scratch []*raftpb.Entry
	err     error // final

	stop, stopped chan struct{} // of the goroutine that syncs at intervals
}

func (l *fileLog) start() {}

func (l *fileLog) Save(state *raftpb.HardState, entries []*raftpb.Entry, sync bool) error {
	return l.do(func() error {
		b, err := newBatch(&l.shape, state, entries)
		if err != nil {
			return err
		}
		return l.save(b, sync)
	})
}

// save writes the state first: what it says about entries is a hint, and so a
// record that a crash has left incomplete has, mostly, nothing behind it.
func (l *fileLog) save(b batch, sync bool) error {
	if b.changed {
		if err := l.wal.Save(b.state.proto(), nil); err != nil {
			return err
		}
	}
	if len(b.entries) > 0 {
		if err := l.wal.Save(nil, l.withData(b.entries)); err != nil {
			return err
		}
	}
	l.shape.add(b)
	if sync {
		return l.wal.Sync()
	}
	return nil
}

// withData gives every entry its data field; see entryRecord.
func (l *fileLog) withData(entries []*raftpb.Entry) []*raftpb.Entry {
	l.scratch = append(l.scratch[:0], entries...)
	for i, e := range l.scratch {
		if e.Data == nil {
			l.scratch[i] = &raftpb.Entry{Type: e.Type, Term: e.Term, Index: e.Index, Data: []byte{}}
		}
	}
	return l.scratch
}

func (l *fileLog) SaveSnapshot(s *raftpb.Snapshot) error {
	return l.do(func() error {
		at, err := newSnapshot(&l.shape, s)
		if err != nil {
			return err
		}
		if err := l.snapshotter.SaveSnap(s); err != nil {
			return err
		}
		if err := syncDir(filepath.Join(l.dir, snapshotDir)); err != nil {
			return err
		}
		state := l.shape.state.raised(at)
		if err := l.wal.Save(state.proto(), nil); err != nil {
			return err
		}
		if err := l.wal.SaveSnapshot(&walpb.Snapshot{Index: &at.index, Term: &at.term, ConfState: raftpb.EnsureConfState(s.GetMetadata().GetConfState())}); err != nil {
			return err
		}
		l.shape.state = state
		l.shape.snapshot(at, true)
		return nil
	})
}

func (l *fileLog) Sync() error { return l.do(l.wal.Sync) }

func (l *fileLog) syncAll() error { return l.wal.Sync() }

func (l *fileLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.err, ErrClosed) {
		return nil
	}
	err := errors.Join(l.err, l.wal.Close(), l.lock.Close())
	l.err = ErrClosed
	return err
}

// do calls f unless the log has failed, and keeps its error.
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

// slow is what a healthy disk takes for no sync.
const slow = time.Second

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
