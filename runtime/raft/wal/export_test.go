package wal

import (
	"os"
	"reflect"
)

// OpenWatched opens a log that calls before before each sync of a file of its own. In
// mode Always the engine syncs most of them.
func OpenWatched(dir string, id Identity, o Options, before func(*os.File)) (Log, Stored, error) {
	return open(dir, id, o, func(f *os.File) error {
		before(f)
		return fdatasync(f)
	})
}

// EngineSyncs reports whether the engine syncs a segment before the next one has its name.
func EngineSyncs(l Log) bool {
	return !reflect.ValueOf(l.(*fileLog).wal).Elem().FieldByName("unsafeNoSync").Bool()
}

// SyncAside does what a log in mode Interval does at each interval.
func SyncAside(l Log) { l.(*fileLog).syncAside() }
