package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Share locks a file for reading, without waiting. It reports false if another process has
// locked the file to write it. The file may be open for reading only. Share takes a lock of
// the open file description, as package fileutil does, and one of flock, as bbolt does.
func Share(file *os.File) (bool, error) {
	const setLock = 37 // F_OFD_SETLK
	err := syscall.FcntlFlock(file.Fd(), setLock, &syscall.Flock_t{Type: syscall.F_RDLCK})
	if err == nil || errors.Is(err, syscall.EINVAL) { // an old kernel has only flock, and then fileutil uses flock too
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EACCES) {
		Unlock(file)
		return false, nil
	}
	return err == nil, err
}
