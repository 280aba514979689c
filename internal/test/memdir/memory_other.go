//go:build !linux

package memdir

// inMemory returns no folder: these systems have no file system in memory that all users share.
func inMemory() (dir string, ok bool) { return "", false }
