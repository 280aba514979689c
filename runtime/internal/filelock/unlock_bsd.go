//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"os"
	"syscall"
)

// Unlock releases the lock of a file for all copies of its descriptor. An error is
// ignored, because the close of the file releases the lock too.
func Unlock(file *os.File) { _ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }
