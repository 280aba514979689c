package wal

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"go.uber.org/zap"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"

	"github.com/topogen/topogen/runtime/internal/regular"
)

// What stands in the directory of a log.
const (
	lockName    = "lock"
	segmentsDir = "wal"
	makingDir   = segmentsDir + ".tmp" // by the engine, until it is complete
	snapshotDir = "snap"
)

// segmentBytes is how large a segment is made beforehand; there is always one more.
// With the engine's 64 MB an idle group would take 128 MB, and the last segment is
// read once more at each start. It holds more than what a disk syncs in a tenth of
// a second, so that a new one is no cost.
const segmentBytes = 16 << 20

func init() { etcdwal.SegmentSizeBytes = segmentBytes }

// Open opens the log in a directory, which is made where it is missing, with the
// one above it there. What Stored holds is durable, and was checked to the last
// bit. A record that a crash has left incomplete at the end is cut off. Other
// damage is a [DamageError].
func Open(dir string, id Identity, o Options) (_ Log, _ Stored, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, Stored{}, err
	}
	if err := id.check(); err != nil {
		return nil, Stored{}, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, Stored{}, err
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	l := newFileLog(dir, o, lock)
	stored, err := l.open(id)
	if err != nil {
		return nil, Stored{}, explained(dir, err)
	}
	l.start()
	return l, stored, nil
}

// lockDir makes the directory, if need be, and takes it for this log alone.
func lockDir(dir string) (*fileutil.LockedFile, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("wal: %s is a file; name the directory of a log", dir)
	} else if errors.Is(err, os.ErrNotExist) {
		if err := os.Mkdir(dir, 0o700); errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("wal: cannot write in %s: %w", filepath.Dir(filepath.Clean(dir)), cause(err))
		} else if err != nil {
			return nil, fmt.Errorf("wal: cannot make the directory of the log: %w", err)
		}
		if err := syncDir(filepath.Dir(filepath.Clean(dir))); err != nil {
			return nil, fmt.Errorf("wal: cannot make the directory of the log: %w", err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, lockName)); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("wal: cannot lock %s: it is %s, not a regular file", filepath.Join(dir, lockName), regular.Kind(info.Mode()))
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, fileutil.PrivateFileMode)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("wal: %s is %w", dir, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("wal: cannot write in %s: %w", dir, cause(err))
	}
	return lock, nil
}

// explained says which log it is about, where an error does not, and who knows what
// to do about damage.
func explained(dir string, err error) error {
	path, isPath := errors.AsType[*os.PathError](err)
	switch {
	case errors.Is(err, ErrIdentity):
		return err
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("wal: %w; \"topoctl log verify %s\" says what to do", err, dir)
	case isPath && errors.Is(err, os.ErrPermission) && path.Op == "mkdir":
		return fmt.Errorf("wal: cannot write in %s: %w", filepath.Dir(path.Path), path.Err)
	case isPath && errors.Is(err, os.ErrPermission):
		return fmt.Errorf("wal: cannot open %s: %w", path.Path, path.Err)
	}
	return fmt.Errorf("wal: cannot open the log in %s: %w", dir, err)
}

// cause is what the system says, without the calls and paths on the way.
func cause(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// open reads what is there, or makes it, and has the engine go on behind it.
func (l *fileLog) open(id Identity) (Stored, error) {
	if err := l.clean(); err != nil {
		return Stored{}, err
	}
	wals := filepath.Join(l.dir, segmentsDir)
	all, err := segments(wals)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Stored{}, err
	}
	if len(all) == 0 {
		return l.create(id)
	}
	if l.options.Sync != Always {
		if all, err = l.dropHeadless(all); err != nil {
			return Stored{}, err
		}
	}
	stored, err := l.read(all, id)
	if err != nil {
		return Stored{}, err
	}
	if err := l.removeSnapshots(); err != nil {
		return Stored{}, err
	}
	// The engine must read before it writes. It reads from the last segment whose
	// index is not above the one it is given, and keeps the entries above it: none.
	last := &walpb.Snapshot{Index: new(uint64(math.MaxUint64)), Term: new(uint64(0))}
	if l.wal, err = etcdwal.Open(zap.NewNop(), wals, last); err != nil {
		return Stored{}, err
	}
	if _, _, _, err = l.wal.ReadAll(); err != nil && !errors.Is(err, etcdwal.ErrSnapshotNotFound) {
		return Stored{}, errors.Join(err, l.wal.Close())
	}
	return stored, l.syncAll()
}

// syncAll makes durable what was read: the process before this one may have been
// killed between a write and its sync.
func (l *fileLog) syncAll() error {
	end := l.tail.bytes
	if err := errors.Join(l.tail.follow(), syncDir(l.tail.dir), syncDir(filepath.Join(l.dir, snapshotDir))); err != nil {
		return err
	}
	l.tail.bytes = end + headMax
	return l.tail.sync()
}

// dropHeadless removes segments at the end that hold no record: in the modes that
// call it a new segment is there before it is synced, but what is before it is
// synced earlier.
func (l *fileLog) dropHeadless(all []segment) ([]segment, error) {
	for len(all) > 1 {
		last := all[len(all)-1]
		r, err := openSegment(last.path, 0, false)
		if err != nil {
			return nil, err
		}
		empty, err := r.empty()
		r.close()
		if err != nil || !empty {
			return all, err
		}
		l.options.Logger.Warn("the log ends in a segment without records, which is removed", "file", last.path)
		if err := errors.Join(os.Remove(last.path), syncDir(l.tail.dir)); err != nil {
			return nil, err
		}
		all = all[:len(all)-1]
	}
	return all, nil
}

// clean removes what a crash has left half made.
func (l *fileLog) clean() error {
	if err := os.RemoveAll(filepath.Join(l.dir, makingDir)); err != nil {
		return err
	}
	wals := filepath.Join(l.dir, segmentsDir)
	all, err := os.ReadDir(wals)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range all {
		if filepath.Ext(e.Name()) != ".tmp" {
			continue
		}
		if err := os.Remove(filepath.Join(wals, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// create makes an empty log.
func (l *fileLog) create(id Identity) (Stored, error) {
	snaps := filepath.Join(l.dir, snapshotDir)
	files, err := snapshotFiles(snaps)
	if err != nil {
		return Stored{}, err
	}
	if len(files) > 0 {
		return Stored{}, missingSegments(l.dir)
	}
	l.options.Logger.Info("a new log begins", "folder", l.dir, "identity", id.String())
	if err := os.MkdirAll(snaps, 0o700); err != nil {
		return Stored{}, err
	}
	if l.wal, err = etcdwal.Create(zap.NewNop(), filepath.Join(l.dir, segmentsDir), appendIdentity(nil, id)); err != nil {
		return Stored{}, err
	}
	return Stored{State: l.shape.state.proto(), Fresh: true}, errors.Join(syncDir(l.dir), l.syncAll())
}

// missingSegments says that there are only snapshots.
func missingSegments(dir string) error {
	return &DamageError{File: filepath.Join(dir, segmentsDir), Reason: "there are snapshots, but the log is missing"}
}

// read reads and checks all records.
func (l *fileLog) read(all []segment, id Identity) (Stored, error) {
	files, err := snapshotFiles(filepath.Join(l.dir, snapshotDir))
	if err != nil {
		return Stored{}, err
	}
	present := make(map[position]snapshotFile)
	for _, f := range files {
		present[f.at] = f
	}
	c := contents{shape: shape{unknown: all[0].seq > 0}}
	var arena arena
	end, err := scan(all, func(r scanned) error {
		switch r.kind {
		case typeMetadata:
			got, ok := parseIdentity(r.data)
			if !ok {
				return errNotOne(r.kind)
			}
			if !got.same(id) {
				return &IdentityError{Dir: l.dir, Got: got, Want: id}
			}
		case typeEntry:
			e, ok := parseEntry(r.data)
			if !ok {
				return errNotOne(r.kind)
			}
			return c.entry(arena.entry(e))
		case typeState:
			s, ok := parseState(r.data)
			if !ok {
				return errNotOne(r.kind)
			}
			c.state = s
		case typeSnapshot:
			at, ok := parseSnapshot(r.data)
			if !ok {
				return errNotOne(r.kind)
			}
			_, is := present[at]
			c.snapshot(at, is)
			if is && !containsPosition(l.snapshots, at) {
				l.snapshots = append(l.snapshots, at)
			}
		}
		return nil
	}, l.cut)
	if err != nil {
		return Stored{}, err
	}
	l.tail.bytes = end
	if c.missing || c.unknown {
		return Stored{}, missingSnapshot(l.dir, &c.shape)
	}
	c.state = c.settled()
	l.shape = c.shape
	stored := Stored{State: c.state.proto(), Entries: slices.Clip(c.entries)}
	if c.base.index > 0 {
		if stored.Snapshot, err = present[c.base].read(); err != nil {
			return Stored{}, err
		}
	}
	return stored, nil
}

// cut cuts off what a crash has left of a record at the end.
func (l *fileLog) cut(c Cut) error {
	file, err := os.OpenFile(c.File, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	l.options.Logger.Warn("the log ends in an incomplete record, which is cut off", "file", c.File, "offset", c.Offset, "reason", c.Reason)
	if err := file.Truncate(c.Offset); err != nil {
		return err
	}
	size := info.Size() + -info.Size()&(wordBytes-1) // the engine reads words
	if err := file.Truncate(size); err != nil {      // zeros, as before the record
		return err
	}
	return file.Sync()
}

// Cut is an incomplete record at the end of a log.
type Cut struct {
	File   string
	Offset int64
	Bytes  int64 // from there to the last that is not zero
	Reason string
}

// scanned is a record with its place.
type scanned struct {
	record
	file   string
	offset int64
	length int64
}

// scan reads all records of the segments, in order, and returns where they end in
// the last. What visit returns becomes a
// DamageError, if it is none and no IdentityError.
func scan(all []segment, visit func(scanned) error, torn func(Cut) error) (end int64, _ error) {
	crc, chain := uint32(0), false
	for i, s := range all {
		r, err := openSegment(s.path, crc, chain)
		if err != nil {
			return 0, err
		}
		err = scanSegment(r, visit)
		var flaw *errFlawed
		if errors.As(err, &flaw) {
			damage := &DamageError{File: s.path, Offset: flaw.offset, Reason: flaw.reason}
			err = damage
			if i == len(all)-1 && r.count > 1 {
				var cut Cut
				var is bool
				if cut, is, err = r.torn(flaw); err == nil && !is {
					err = damage
				} else if err == nil {
					cut.File = s.path
					err = torn(cut)
				}
			}
		}
		crc, chain, end = r.crc, true, r.offset
		r.close()
		if err != nil {
			return 0, err
		}
	}
	return end, nil
}

func scanSegment(r *segmentReader, visit func(scanned) error) error {
	for {
		at := r.offset
		rec, length, err := r.next()
		if errors.Is(err, io.EOF) {
			if r.count < 2 {
				return flawed(r.offset, "the segment has no head")
			}
			return nil
		}
		if err != nil {
			return err
		}
		err = visit(scanned{rec, r.file.Name(), at, length})
		if err != nil && !errors.Is(err, ErrIdentity) && !errors.Is(err, errStop) {
			return &DamageError{File: r.file.Name(), Offset: at, Reason: err.Error()}
		}
		if err != nil {
			return err
		}
	}
}

// errStop ends a scan.
var errStop = errors.New("no more")
