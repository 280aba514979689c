package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.uber.org/zap"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"

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
func Open(dir string, id Identity, o Options) (Log, Stored, error) {
	l, stored, err := open(dir, id, o, fdatasync)
	if err != nil { // a nil *fileLog is not a nil Log
		return nil, Stored{}, err
	}
	return l, stored, nil
}

func open(dir string, id Identity, o Options, fsync func(*os.File) error) (_ *fileLog, _ Stored, err error) {
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
	l.active.fsync = fsync
	stored, err := l.open(id)
	if err != nil {
		return nil, Stored{}, openError(dir, err)
	}
	if err := l.start(); err != nil {
		return nil, Stored{}, openError(dir, errors.Join(err, l.Close()))
	}
	return l, stored, nil
}

// lockDir makes the directory, if need be, and takes it for this log alone.
func lockDir(dir string) (*fileutil.LockedFile, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("wal: %s is a file; name the directory of a log", dir)
	} else if errors.Is(err, os.ErrNotExist) {
		if err := os.Mkdir(dir, 0o700); errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("wal: cannot write in %s: %w", filepath.Dir(filepath.Clean(dir)), systemError(err))
		} else if err != nil {
			return nil, fmt.Errorf("wal: cannot make the directory of the log: %w", err)
		}
		if err := syncDir(filepath.Dir(filepath.Clean(dir))); err != nil && !errors.Is(err, os.ErrPermission) { // whoever may make it may not be allowed to read
			return nil, fmt.Errorf("wal: cannot make the directory of the log durable: %w", err)
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
		return nil, fmt.Errorf("wal: cannot write in %s: %w", dir, systemError(err))
	}
	return lock, nil
}

// openError says which log it is about, where an error does not, and who knows what
// to do about damage.
func openError(dir string, err error) error {
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
func systemError(err error) error {
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
	if err := l.lengthen(all); err != nil {
		return Stored{}, err
	}
	stored, last, err := l.read(all, id)
	if err != nil {
		return Stored{}, err
	}
	unknown, err := l.oldSnapshots()
	if err != nil {
		return Stored{}, err
	}
	if err := l.remove(obsoleteFiles{snapshots: unknown}); err != nil {
		return Stored{}, err
	}
	return stored, l.openEngine(all[last.segment], last.offset)
}

// syncAll makes durable what was read, which ends at an offset in the last segment: the
// process before this one may have been killed between a write and its sync.
func (l *fileLog) syncAll(end int64) error {
	if _, err := l.active.advance(); err != nil {
		return err
	}
	if err := errors.Join(syncDir(l.active.dir), syncDir(filepath.Join(l.dir, snapshotDir))); err != nil {
		return err
	}
	l.active.bytes = end + headMax
	return l.active.sync()
}

// clean removes what a crash has left half made.
func (l *fileLog) clean() error {
	if err := os.RemoveAll(filepath.Join(l.dir, makingDir)); err != nil {
		return err
	}
	for _, part := range []string{segmentsDir, snapshotDir} {
		dir := filepath.Join(l.dir, part)
		all, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, e := range all {
			if filepath.Ext(e.Name()) != ".tmp" {
				continue
			}
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
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
	l.marks = newMarkWriter(markReader{next: 1}, l.options.Sync == Always, false) // the record of the snapshot at 0
	return Stored{State: l.summary.state.proto(), Fresh: true}, errors.Join(syncDir(l.dir), l.syncAll(0))
}

// missingSegments says that there are only snapshots.
func missingSegments(dir string) error {
	return &DamageError{File: filepath.Join(dir, segmentsDir), Reason: "there are snapshots, but the log is missing"}
}

// read reads and checks all records.
func (l *fileLog) read(all []segment, id Identity) (Stored, logEnd, error) {
	files, err := snapshotFiles(filepath.Join(l.dir, snapshotDir))
	if err != nil {
		return Stored{}, logEnd{}, err
	}
	r := reader{log: l, id: id, present: make(map[position]snapshotFile), contents: contents{summary: summary{unknown: all[0].seq > 0}}}
	for _, f := range files {
		r.present[f.at] = f
	}
	s := newScanner(all, openingNote{}, r.record)
	s.unsynced = l.options.Sync != Always
	if err := s.run(); err != nil {
		return Stored{}, logEnd{}, err
	}
	stored, err := r.stored()
	if err == nil && s.cut != nil {
		err = l.cutOff(*s.cut)
	}
	l.marks = newMarkWriter(s.marks, l.options.Sync == Always, r.endMarked)
	return stored, s.end, err
}

// reader takes the records of a log when it is opened.
type reader struct {
	contents
	log       *fileLog
	id        Identity
	present   map[position]snapshotFile
	arena     arena
	endMarked bool // the last record is a mark that says all others were synced, and nothing else
}

func (c *reader) record(r scanned) error {
	endMarked := false
	switch r.kind {
	case typeMetadata:
		got, ok := parseIdentity(r.data)
		if !ok {
			return errMalformed(r.kind)
		}
		if !got.same(c.id) {
			return &IdentityError{Dir: c.log.dir, Got: got, Want: c.id}
		}
	case typeEntry:
		e, ok := parseEntry(r.data)
		if !ok {
			return errMalformed(r.kind)
		}
		if err := c.entry(c.arena.entry(e)); err != nil {
			return err
		}
	case typeState:
		endMarked = r.state.marked && r.state.mark.durable == r.state.mark.number && r.state.hardState == c.state
		c.state = r.state.hardState
	case typeSnapshot:
		at, ok := parseSnapshot(r.data)
		if !ok {
			return errMalformed(r.kind)
		}
		_, is := c.present[at]
		c.snapshot(at, is)
		if is && !containsPosition(c.log.snapshots, at) {
			c.log.snapshots = append(c.log.snapshots, at)
		}
	}
	c.endMarked = endMarked
	return nil
}

// stored is what the log holds.
func (c *reader) stored() (Stored, error) {
	if c.missing || c.unknown {
		return Stored{}, missingSnapshot(c.log.dir, &c.summary)
	}
	c.state = c.initialState()
	c.log.summary = c.summary
	stored := Stored{State: c.state.proto(), Entries: slices.Clip(c.entries)}
	if c.base.index == 0 {
		return stored, nil
	}
	file := c.present[c.base]
	r, err := file.open()
	if err != nil {
		return Stored{}, err
	}
	stored.Snapshot, stored.BodySize, stored.open = r.Snapshot, r.Size, file.open
	return stored, r.Close()
}
