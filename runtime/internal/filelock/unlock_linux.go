package filelock

import (
	"os"
	"syscall"
)

// Unlock releases the lock of a file for all copies of its descriptor. Package fileutil
// takes a lock of the open file description if the kernel has them, otherwise a lock of
// flock. An error is ignored, because the close of the file releases the lock too.
func Unlock(file *os.File) {
	const setLock = 37 // F_OFD_SETLK
	err := syscall.FcntlFlock(file.Fd(), setLock, &syscall.Flock_t{Type: syscall.F_UNLCK})
	if err != nil {
		_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
	}
}
