package wal

import "os"

// OpenWatched opens a log that calls before before each sync of a file of its own. In
// mode Always the engine syncs most of them.
func OpenWatched(dir string, id Identity, o Options, before func(*os.File)) (Log, Stored, error) {
	return open(dir, id, o, func(f *os.File) error {
		before(f)
		return fdatasync(f)
	})
}

// SyncAside does what a log in mode Interval does at each interval.
func SyncAside(l Log) { l.(*fileLog).syncAside() }
