//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Share locks a file for reading, without waiting. It reports false if another process has
// locked the file to write it. The file may be open for reading only.
func Share(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
