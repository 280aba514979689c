//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package wal

import (
	"os"
	"syscall"
)

// unlock releases the lock of a file for all copies of its descriptor. An error is
// ignored, because the close of the file releases the lock too.
func unlock(file *os.File) { _ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }
