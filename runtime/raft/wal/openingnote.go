package wal

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"

	"github.com/topogen/topogen/runtime/internal/regular"
)

// A segment has its full length before it gets its name, and keeps this length. A shorter
// segment has lost its end, and perhaps records. There is one exception: when the engine
// opens a log, it truncates the last segment to the end of its records and then extends it
// to the full length. If the process ends in between, the segment is short but not damaged.
// So the lock file contains a note with the length until the engine has opened the log.

// openingNote is written to the lock file before the engine opens a log.
type openingNote struct {
	name string // of the last segment
	end  int64  // of its records: the engine truncates the segment to this length
	size int64  // of the segment before
}

const (
	noteFormat = "opening %s with records up to %d of %d\n"
	noteMax    = 128 // bytes; the name of a segment has 37
)

// readNote reads the note in a lock file. It returns an empty note if the note is missing
// or incomplete.
func readNote(file io.ReaderAt) (n openingNote, err error) {
	b := make([]byte, noteMax)
	k, err := file.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return openingNote{}, err
	}
	if _, err := fmt.Sscanf(string(b[:k]), noteFormat, &n.name, &n.end, &n.size); err != nil || n.size < n.end || n.size > tornMax {
		return openingNote{}, nil
	}
	return n, nil
}

// noteOf reads the note of a log without locking the log.
func noteOf(dir string) (openingNote, error) {
	file, _, err := openFile(filepath.Join(dir, lockName), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return openingNote{}, nil
	}
	if err != nil {
		return openingNote{}, err
	}
	defer file.Close()
	return readNote(file)
}

// allows reports whether the note is about this segment, and the segment has exactly the
// length to which the engine truncates it.
func (n openingNote) allows(s segment, last bool, size int64) bool {
	return last && filepath.Base(s.path) == n.name && size == n.end
}

// lengthen extends the last segment to its full length if a process ended before the
// engine could do that.
func (l *fileLog) lengthen(all []segment) error {
	n, err := readNote(l.lock)
	if err != nil {
		return err
	}
	last := all[len(all)-1]
	file, info, err := openFile(last.path, os.O_RDONLY)
	if err != nil {
		return err
	}
	_ = file.Close() // nothing was written to it
	if info.Size() >= segmentMin() || !n.allows(last, true, info.Size()) {
		return nil
	}
	l.options.Logger.Info("the previous process ended while it opened the log; extending the last segment to its full length", "file", last.path, "length", n.size)
	if file, _, err = regular.OpenOwn(last.path, os.O_RDWR); err != nil {
		return err
	}
	return errors.Join(file.Truncate(n.size), file.Sync(), file.Close())
}

// openEngine opens the engine, which writes after the end of the log.
func (l *fileLog) openEngine(last segment, end int64) error {
	info, err := os.Stat(last.path)
	if err != nil {
		return err
	}
	if end < info.Size() {
		if err := l.note(openingNote{filepath.Base(last.path), end, info.Size()}); err != nil {
			return err
		}
	}
	// The engine must read before it writes. It reads from the last segment whose
	// index does not exceed the given one, and keeps the entries above that index. With
	// the maximal index it reads one segment and keeps no entries.
	from := &walpb.Snapshot{Index: new(uint64(math.MaxUint64)), Term: new(uint64(0))}
	if l.wal, err = openSegments(l.active.dir, from); err != nil {
		return err
	}
	if _, _, _, err = l.wal.ReadAll(); err != nil && !errors.Is(err, etcdwal.ErrSnapshotNotFound) {
		return errors.Join(err, l.wal.Close())
	}
	if err := l.syncAll(end); err != nil {
		return err
	}
	return l.note(openingNote{})
}

// note writes a note durably. An empty note removes the previous one.
func (l *fileLog) note(n openingNote) error {
	if err := l.lock.Truncate(0); err != nil {
		return err
	}
	if n != (openingNote{}) {
		if _, err := l.lock.WriteAt(fmt.Appendf(nil, noteFormat, n.name, n.end, n.size), 0); err != nil {
			return err
		}
	}
	return l.lock.Sync()
}
