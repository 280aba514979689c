package wal

import (
	"fmt"
	"os"
)

// OpenWatched opens a log that calls the function before ahead of each sync that the package
// does. The engine's own syncs, most of them in mode Always, do not call it. If before returns
// an error, the sync fails with it.
func OpenWatched(dir string, id Identity, o Options, before func(*os.File) error) (Log, Stored, error) {
	return open(dir, id, o, func(f *os.File) error {
		if err := before(f); err != nil {
			return err
		}
		return fdatasync(f)
	})
}

// FillBody sets the size of a body as if that many bytes were written.
func FillBody(w SnapshotWriter, size int64) {
	switch w := w.(type) {
	case *fileSnapshot:
		w.w.size = size
	case *diskWriter:
		w.size = size
	}
}

// SyncAfter makes a body be synced after the given number of chunks, as if the others before the
// sync were written.
func SyncAfter(w SnapshotWriter, chunks int) {
	w.(*fileSnapshot).w.unsynced = bodySyncStep - chunks*bodyChunk
}

// BodyChunk is the size of the chunks of a body.
const BodyChunk = bodyChunk

// SyncInBackground does the sync that a log in mode Interval does at each interval.
func SyncInBackground(l Log) { l.(*fileLog).syncInBackground() }

// Note returns the content of the lock file while the engine opens a log.
func Note(name string, end, size int64) []byte { return fmt.Appendf(nil, noteFormat, name, end, size) }
