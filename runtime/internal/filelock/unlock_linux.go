package filelock

import (
	"os"
	"syscall"
)

// Unlock releases the lock of a file for all copies of its descriptor. Package fileutil
// takes a lock of the open file description if the kernel has them, otherwise a lock of
// flock. Errors are ignored, because the close of the file releases the lock too.
func Unlock(file *os.File) {
	const setLock = 37 // F_OFD_SETLK
	_ = syscall.FcntlFlock(file.Fd(), setLock, &syscall.Flock_t{Type: syscall.F_UNLCK})
	_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
}
