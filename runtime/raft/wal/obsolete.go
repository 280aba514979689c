package wal

import (
	"errors"
	"os"
	"path/filepath"
)

// obsoleteFiles are the files that a log no longer needs.
type obsoleteFiles struct {
	snapshots, segments []string // the oldest first
}

// releaseObsolete drops the references to obsolete snapshots and segments, and returns their
// files. The caller removes them after it has unlocked the log, because the removal of a
// large file is slow.
func (l *fileLog) releaseObsolete() (old obsoleteFiles, err error) {
	if len(l.snapshots) < snapshotsKept {
		return old, nil
	}
	l.snapshots = l.snapshots[len(l.snapshots)-snapshotsKept:]
	if old.snapshots, err = l.oldSnapshots(); err != nil {
		return old, err
	}
	index := l.snapshots[0].index
	if err := l.wal.ReleaseLockTo(index); err != nil {
		return old, err
	}
	all, err := segments(l.active.dir)
	if err != nil {
		return old, err
	}
	for i := 1; i < len(all) && all[i].index < index; i++ { // the first segment to keep contains the record of the snapshot at index
		old.segments = append(old.segments, all[i-1].path)
	}
	return old, nil
}

// oldSnapshots lists the files of obsolete snapshots, including files that a crash has left.
func (l *fileLog) oldSnapshots() (old []string, err error) {
	files, err := snapshotFiles(filepath.Join(l.dir, snapshotDir))
	if err != nil {
		return nil, err
	}
	kept := l.snapshots[max(0, len(l.snapshots)-snapshotsKept):]
	for _, f := range files {
		if !containsPosition(kept, f.at) {
			old = append(old, f.path)
		}
	}
	return old, nil
}

// removeObsolete removes files. After an error the next snapshot tries again.
func (l *fileLog) removeObsolete(old obsoleteFiles) {
	if err := l.remove(old); err != nil {
		l.options.Logger.Warn("cannot remove obsolete files of the log", "log", l.dir, "error", err)
	}
}

// remove removes the snapshots before the segments. In the other order a crash could leave an
// obsolete snapshot without the segments that refer to it.
func (l *fileLog) remove(old obsoleteFiles) error {
	for _, path := range append(old.snapshots, old.segments...) {
		if err := removeDurably(path); err != nil {
			return err
		}
	}
	return nil
}

// removeDurably removes a file, and syncs its directory. A file system may carry out removals in
// any order until then, and a log with a gap between its segments would count as damaged.
func removeDurably(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}
