package wal

import "io"

// Lock locks the directory of a log, and creates the directory if it does not exist. It
// protects the directory before it contains a log. Close the lock before [Open] is
// called.
func Lock(dir string) (io.Closer, error) { return lockDir(dir) }
