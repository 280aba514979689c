//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package filelock

import "os"

// Unlock does nothing. On Windows a new process gets no copies of open files, so the close
// of the file suffices.
func Unlock(*os.File) {}
