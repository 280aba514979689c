package wal

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
)

// A segment has its full length before it has its name, and keeps it: a shorter one has
// lost its end, and perhaps records. But the engine, when it opens a log, cuts the last
// segment to the end of its records and then makes it long again. So before that the
// length is noted in the file of the lock: a process that ends in between leaves a short
// segment, which then is not damage.

// openingNote says that the engine opens a log.
type openingNote struct {
	name string // of the last segment
	end  int64  // of its records: what the engine cuts it to
	size int64  // before that
}

const (
	noteFormat = "opening %s with records up to %d of %d\n"
	noteMax    = 128 // bytes; a name of a segment has 37
)

// readNote reads the note in the file of a lock; an incomplete note says nothing.
func readNote(file io.ReaderAt) (n openingNote) {
	b := make([]byte, noteMax)
	k, err := file.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return openingNote{}
	}
	if _, err := fmt.Sscanf(string(b[:k]), noteFormat, &n.name, &n.end, &n.size); err != nil || n.size < n.end || n.size > tornMax {
		return openingNote{}
	}
	return n
}

// noteOf reads the note of a log that is not opened.
func noteOf(dir string) openingNote {
	file, _, err := openFile(filepath.Join(dir, lockName))
	if err != nil {
		return openingNote{}
	}
	defer file.Close()
	return readNote(file)
}

// allows reports whether the segment is as short as the engine makes it.
func (n openingNote) allows(s segment, last bool, size int64) bool {
	return last && filepath.Base(s.path) == n.name && size == n.end
}

// lengthen gives the last segment its length, where a process ended before the engine did.
func (l *fileLog) lengthen(all []segment) error {
	n := readNote(l.lock)
	last := all[len(all)-1]
	file, info, err := openFile(last.path)
	if err != nil {
		return err
	}
	_ = file.Close() // nothing was written to it
	if info.Size() >= segmentMin() || !n.allows(last, true, info.Size()) {
		return nil
	}
	l.options.Logger.Info("the process before this one ended while it opened the log; a segment gets its length back", "file", last.path, "length", n.size)
	if file, err = os.OpenFile(last.path, os.O_RDWR, 0); err != nil {
		return err
	}
	return errors.Join(file.Truncate(n.size), file.Sync(), file.Close())
}

// openEngine has the engine go on behind the end of the log.
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
	// index is not above the one it is given, and keeps the entries above it: none.
	from := &walpb.Snapshot{Index: new(uint64(math.MaxUint64)), Term: new(uint64(0))}
	if l.wal, err = etcdwal.Open(zap.NewNop(), l.active.dir, from); err != nil {
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

// note makes a note durable; an empty one says that the log is open.
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
