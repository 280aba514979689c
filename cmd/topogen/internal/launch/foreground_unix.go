//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package launch

import (
	"os"
	"syscall"
	"unsafe"
)

// inForeground reports whether file is a terminal that sends its interrupts to the
// process group of topogen.
func inForeground(file *os.File) bool {
	var group int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return errno == 0 && int(group) == syscall.Getpgrp()
}
