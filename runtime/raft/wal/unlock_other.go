//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package wal

import "os"

// unlock does nothing. On Windows a new process gets no copies of open files, so the close
// of the file suffices.
func unlock(*os.File) {}
