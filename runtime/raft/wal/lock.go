package wal

import "io"

// Lock makes a directory for a log, if need be, and takes it for the caller alone,
// before there is a log in it. Close it before [Open] is called.
func Lock(dir string) (io.Closer, error) { return lockDir(dir) }
