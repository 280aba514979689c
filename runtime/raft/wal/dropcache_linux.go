//go:build linux && (amd64 || arm64)

package wal

import (
	"os"
	"syscall"
)

// dropCache has the system forget what it holds of a file that is synced, so that what is
// read is what the disk has. A system that does not, reads from memory.
func dropCache(file *os.File) {
	const dontNeed = 4 // POSIX_FADV_DONTNEED
	_, _, _ = syscall.Syscall6(syscall.SYS_FADVISE64, file.Fd(), 0, 0, dontNeed, 0, 0)
}
