package wal

import (
	"os"
	"reflect"
)

// OpenWatched opens a log that calls before before each sync of a file of its own. In
// mode Always the engine syncs most of them. An error of before is that of the sync.
func OpenWatched(dir string, id Identity, o Options, before func(*os.File) error) (Log, Stored, error) {
	return open(dir, id, o, func(f *os.File) error {
		if err := before(f); err != nil {
			return err
		}
		return fdatasync(f)
	})
}

// FillBody has the body of a snapshot be so large, without what would be in it.
func FillBody(w SnapshotWriter, size int64) {
	switch w := w.(type) {
	case *fileSnapshot:
		w.w.size = size
	case *diskWriter:
		w.size = size
	}
}

// BodyChunk is what a snapshot's body is read and written by.
const BodyChunk = bodyChunk

// EngineSyncs reports whether the engine syncs a segment before the next one has its name.
func EngineSyncs(l Log) bool {
	return !reflect.ValueOf(l.(*fileLog).wal).Elem().FieldByName("unsafeNoSync").Bool()
}

// SyncInBackground does what a log in mode Interval does at each interval.
func SyncInBackground(l Log) { l.(*fileLog).syncInBackground() }
