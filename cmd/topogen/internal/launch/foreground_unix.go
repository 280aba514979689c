//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package launch

import (
	"os"
	"syscall"
	"unsafe"
)

// inForeground reports whether file is a terminal whose foreground process group is that of
// topogen. Such a terminal sends interrupts to all processes of the group.
func inForeground(file *os.File) bool {
	var group int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return errno == 0 && int(group) == syscall.Getpgrp()
}
