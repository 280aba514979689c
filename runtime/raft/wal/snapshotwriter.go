package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/internal/pagecache"
)

// SnapshotWriter writes a snapshot with a body. Its methods may be called from any
// goroutine, also during other calls of the log. The caller must end every writer with
// Commit or Abort; otherwise only the next Open removes its file.
type SnapshotWriter interface {
	// Write appends to the body. An error is final for this writer. It matches
	// [ErrTooLarge] if the body exceeds [SnapshotBodyMax].
	io.Writer
	// Body returns a reader of the body, so that the caller can decode the body before it
	// commits. Write fails after Body.
	Body() (io.ReadCloser, error)
	// Seal syncs the snapshot with s as its head and reads it back, which is slow for a
	// large file. A later Commit of the same head has only the last step left, which is
	// fast. Write fails after Seal.
	Seal(s *raftpb.Snapshot) error
	// Commit seals the snapshot, if Seal was not called, and makes it the newest snapshot
	// of the log, as SaveSnapshot does; s is its head. Only this last step locks the log.
	// An error that matches [ErrFailed] or [ErrClosed] is an error of the log. After any
	// other error the log is unchanged: [ErrInvalid] means that s is not newer than the
	// log's snapshot, and [ErrTooLarge] that the head or the body exceeds its limit.
	Commit(s *raftpb.Snapshot) error
	// Abort removes the written data. It may be called more than once. After Commit it does
	// nothing.
	Abort() error
}

// snapshotTemp is the pattern of the file's name until Commit renames it.
const snapshotTemp = "*.tmp"

var (
	errEnded  = errors.New("wal: the snapshot was already read, sealed, committed or aborted")
	errSealed = errors.New("wal: the snapshot was sealed with a different head")
)

// fileSnapshot is the SnapshotWriter of a log in files.
type fileSnapshot struct {
	log      *fileLog
	w        *bodyWriter
	path     string
	readable bool // Body was called: the body is complete
	sealed   *raftpb.Snapshot
	ended    bool
	mu       sync.Mutex // so that concurrent calls, a mistake of the caller, return errors
}

func (l *fileLog) CreateSnapshot() (SnapshotWriter, error) {
	if err := l.do(func() error { return nil }); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(filepath.Join(l.dir, snapshotDir), snapshotTemp)
	if err != nil {
		return nil, fmt.Errorf("wal: cannot write a snapshot: %w", err)
	}
	s := &fileSnapshot{log: l, path: file.Name()}
	if s.w, err = newBodyWriter(file, l.active.fsync); err != nil {
		return nil, fmt.Errorf("wal: cannot write a snapshot: %w", errors.Join(err, file.Close(), os.Remove(s.path)))
	}
	return s, nil
}

func (s *fileSnapshot) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.readable || s.sealed != nil {
		return 0, errEnded
	}
	return s.w.Write(p)
}

func (s *fileSnapshot) Body() (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, errEnded
	}
	if s.w.err == nil && s.sealed == nil {
		s.w.err = s.w.flush()
	}
	if s.w.err != nil {
		return nil, s.w.err
	}
	s.readable = true
	file, _, err := openFile(s.path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return newBodyReader(file, s.w.size, s.w.crc), nil
}

func (s *fileSnapshot) Commit(head *raftpb.Snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errEnded
	}
	err := s.seal(head)
	if err == nil {
		err = s.log.saveSnapshot(head, func(at position) error {
			dir := filepath.Dir(s.path)
			if err := os.Rename(s.path, snapshotPath(dir, at)); err != nil {
				return err
			}
			return syncDir(dir)
		})
	}
	return errors.Join(err, s.end())
}

func (s *fileSnapshot) Seal(head *raftpb.Snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errEnded
	}
	return s.seal(head)
}

// seal completes the file if it is not complete yet.
func (s *fileSnapshot) seal(head *raftpb.Snapshot) error {
	switch {
	case s.sealed == nil:
	case proto.Equal(s.sealed, head):
		return nil
	default:
		return errSealed
	}
	if err := s.complete(head); err != nil {
		return err
	}
	s.sealed = proto.CloneOf(head)
	return nil
}

// complete makes the file durable and reads it back.
func (s *fileSnapshot) complete(head *raftpb.Snapshot) error {
	at, err := position{}, error(nil)
	if err := s.log.do(func() error { at, err = checkSnapshot(&s.log.summary, head); return err }); err != nil {
		return err
	}
	b, err := marshalHead(head)
	if err != nil {
		return err
	}
	if err := s.w.finish(b); err != nil {
		return fmt.Errorf("wal: cannot write a snapshot: %w", err)
	}
	pagecache.TryDrop(s.w.file)
	r, err := snapshotFile{s.path, at}.open()
	if err != nil {
		return fmt.Errorf("wal: the snapshot differs from the written one: %w", err)
	}
	n, err := io.Copy(io.Discard, r)
	if err == nil && (n != s.w.size || !proto.Equal(r.Snapshot, head)) {
		err = errors.New("the head or the size does not match")
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("wal: the snapshot differs from the written one: %w", err)
	}
	return nil
}

func (s *fileSnapshot) Abort() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end()
}

// end closes the file. It removes the file unless Commit has renamed it.
func (s *fileSnapshot) end() error {
	if s.ended {
		return nil
	}
	s.ended = true
	err := os.Remove(s.path)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(s.w.file.Close(), err)
}

func (l *fileLog) OpenSnapshot(index uint64) (*SnapshotReader, error) {
	var present []position
	if err := l.do(func() error { present = slices.Clone(l.snapshots); return nil }); err != nil {
		return nil, err
	}
	for _, at := range present {
		if at.index == index {
			return snapshotFile{snapshotPath(filepath.Join(l.dir, snapshotDir), at), at}.open()
		}
	}
	return nil, errNoSnapshot(index)
}
