package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.uber.org/zap"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
)

// Names in the directory of a log.
const (
	lockName    = "lock"
	segmentsDir = "wal"
	makingDir   = segmentsDir + ".tmp" // name of segmentsDir until the engine has completed it
	snapshotDir = "snap"
)

// segmentBytes is the size of a segment. The engine allocates it in advance, and always
// has one segment more than it uses. With the engine's default of 64 MB an idle group
// would take 128 MB, and each start reads the last segment twice. A disk needs more than
// a tenth of a second to sync 16 MiB, so the cost of a new segment does not matter.
const segmentBytes = 16 << 20

func init() { etcdwal.SegmentSizeBytes = segmentBytes }

// Open opens the log in a directory. It creates the directory if it does not exist; the
// parent directory must exist. The content of Stored is durable and was fully checked.
// Open removes records at the end that a crash has left incomplete. Other damage is a
// [DamageError].
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

// openError adds the directory to an error that does not name it. To an error about
// damage it adds the command that explains what to do.
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

// systemError returns the error of the operating system, without the call and the path.
func systemError(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// open reads the log, or creates it, and opens the engine to write after its end.
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
	if err := l.syncSegments(all); err != nil {
		return Stored{}, err
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

// syncSegments syncs all segments before they are read: the previous process may have been killed
// before a sync. Then the system can drop them from its memory, which has data that no later
// sync writes to the disk if a sync of the previous process has failed.
func (l *fileLog) syncSegments(all []segment) error {
	for _, s := range all {
		file, _, err := openFile(s.path, os.O_RDWR)
		if err != nil {
			return err
		}
		if err := errors.Join(l.active.fsync(file), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// syncAll syncs the names of all files, and the records that were read, up to the offset end in
// the last segment. The previous process may have been killed between a write, or the creation
// of a file or directory, and its sync.
func (l *fileLog) syncAll(end int64) error {
	if _, err := l.active.advance(); err != nil {
		return err
	}
	snaps := filepath.Join(l.dir, snapshotDir)
	if err := os.MkdirAll(snaps, 0o700); err != nil { // the power may have failed before its name was synced
		return err
	}
	if err := errors.Join(syncDir(l.dir), syncDir(l.active.dir), syncDir(snaps)); err != nil {
		return err
	}
	l.active.bytes = end + headMax
	return l.active.sync()
}

// clean removes incomplete files that a crash has left.
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

// create creates an empty log.
func (l *fileLog) create(id Identity) (Stored, error) {
	files, err := snapshotFiles(filepath.Join(l.dir, snapshotDir))
	if err != nil {
		return Stored{}, err
	}
	if len(files) > 0 {
		return Stored{}, missingSegments(l.dir)
	}
	l.options.Logger.Info("creating a new log", "folder", l.dir, "identity", id.String())
	if l.wal, err = etcdwal.Create(zap.NewNop(), filepath.Join(l.dir, segmentsDir), appendIdentity(nil, id)); err != nil {
		return Stored{}, err
	}
	if l.wal == nil { // Create of the engine closes the directory after a failed sync, and returns the error of that
		return Stored{}, fmt.Errorf("cannot sync %s", l.dir)
	}
	l.marks = newMarkWriter(markReader{next: 1}, l.options.Sync == Always, false) // the engine has written one record, of a snapshot at index 0
	return Stored{State: l.summary.state.proto(), Fresh: true}, l.syncAll(0)
}

// missingSegments is the error for a log that has snapshots but no segments.
func missingSegments(dir string) error {
	return &DamageError{File: filepath.Join(dir, segmentsDir), Reason: "there are snapshots, but the segments are missing"}
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

// reader collects the records of a log while the log is opened.
type reader struct {
	contents
	log       *fileLog
	id        Identity
	present   map[position]snapshotFile
	arena     arena
	endMarked bool // the last record repeats the state, with a mark that all records before it are synced
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

// stored returns the content of the log.
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
