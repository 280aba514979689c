//go:build linux && (amd64 || arm64)

package wal

import (
	"os"
	"syscall"
)

// dropCache removes a synced file from the cache of the operating system, so that a
// later read returns what is on the disk. On other systems the read returns the cached
// data.
func dropCache(file *os.File) {
	const dontNeed = 4 // POSIX_FADV_DONTNEED
	_, _, _ = syscall.Syscall6(syscall.SYS_FADVISE64, file.Fd(), 0, 0, dontNeed, 0, 0)
}
