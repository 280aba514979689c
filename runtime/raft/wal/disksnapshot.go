package wal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"google.golang.org/protobuf/proto"

	"go.etcd.io/raft/v3/raftpb"
)

// diskSnapshot is a snapshot on a simulated disk. It is immutable.
type diskSnapshot struct {
	head *raftpb.Snapshot
	body []byte
	size int64 // of body; -1: no body
}

func (s *diskSnapshot) open() *SnapshotReader {
	return &SnapshotReader{Snapshot: proto.CloneOf(s.head), Size: s.size, body: io.NopCloser(bytes.NewReader(s.body))}
}

// diskWriter is the SnapshotWriter of a simulated disk. Its data does not survive a crash
// before Commit.
type diskWriter struct {
	log      *diskLog
	mu       sync.Mutex
	body     []byte
	size     int64 // of body
	readable bool
	sealed   *raftpb.Snapshot
	ended    bool
	err      error // of the first failed call; later calls return it
}

func (l *diskLog) CreateSnapshot() (SnapshotWriter, error) {
	if err := l.do(func(*Disk) error { return nil }); err != nil {
		return nil, err
	}
	return &diskWriter{log: l}, nil
}

func (w *diskWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.readable || w.sealed != nil {
		return 0, errEnded
	}
	if w.err == nil {
		w.err = w.log.do(func(*Disk) error { return nil })
	}
	if w.err == nil && int64(len(p)) > SnapshotBodyMax-w.size {
		w.err = errBody
	}
	if w.err != nil {
		return 0, w.err
	}
	w.body = append(w.body, p...)
	w.size += int64(len(p))
	return len(p), nil
}

func (w *diskWriter) Body() (io.ReadCloser, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return nil, errEnded
	}
	if w.err != nil {
		return nil, w.err
	}
	w.readable = true
	return io.NopCloser(bytes.NewReader(w.body)), nil
}

func (w *diskWriter) Commit(head *raftpb.Snapshot) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return errEnded
	}
	w.ended = true
	if err := w.seal(head); err != nil {
		return err
	}
	return w.log.saveSnapshot(&diskSnapshot{head: head, body: w.body, size: w.size})
}

func (w *diskWriter) Seal(head *raftpb.Snapshot) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return errEnded
	}
	return w.seal(head)
}

func (w *diskWriter) seal(head *raftpb.Snapshot) error {
	switch {
	case w.err != nil:
		return w.err
	case w.sealed != nil && proto.Equal(w.sealed, head):
		return nil
	case w.sealed != nil:
		return errSealed
	}
	if err := w.log.do(func(*Disk) error { _, err := checkSnapshot(&w.log.summary, head); return err }); err != nil {
		return err
	}
	if _, err := marshalHead(head); err != nil {
		return err
	}
	if err := w.log.syncBody(); err != nil {
		return err
	}
	w.sealed = proto.CloneOf(head)
	return nil
}

// syncBody simulates the sync of the snapshot's own file. If it fails, the log stays
// usable.
func (l *diskLog) syncBody() (err error) {
	failed := l.do(func(d *Disk) error {
		if d.failSync {
			d.failSync = false
			err = fmt.Errorf("wal: cannot write a snapshot: %w", errFailSync)
		}
		return nil
	})
	if failed != nil {
		return failed
	}
	return err
}

func (w *diskWriter) Abort() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	return nil
}

func (l *diskLog) OpenSnapshot(index uint64) (r *SnapshotReader, err error) {
	kept := 0
	failed := l.do(func(d *Disk) error {
		for i := len(d.records) - 1; i >= 0 && kept < snapshotsKept; i-- {
			s := d.records[i].snapshot
			if s == nil {
				continue
			}
			if kept++; positionOf(s.head).index == index {
				r = s.open()
				return nil
			}
		}
		err = errNoSnapshot(index)
		return nil
	})
	if failed != nil {
		return nil, failed
	}
	return r, err
}

func errNoSnapshot(index uint64) error {
	return fmt.Errorf("wal: there is no snapshot at %d: %w", index, os.ErrNotExist)
}
