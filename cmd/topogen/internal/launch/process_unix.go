//go:build unix

package launch

import (
	"os"
	"os/exec"
	"syscall"
	"unsafe"
)

// pipes says that a child inherits more than the standard streams.
const pipes = true

var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

func interrupt(p *os.Process) error { return p.Signal(os.Interrupt) }

// isolate gives the child a process group of its own, unless it is to stay in
// the foreground with us. Signalled says that it learns by signals alone what
// happens to us.
func isolate(cmd *exec.Cmd, signalled, foreground bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: signalled && !foreground}
	if signalled {
		followParent(cmd.SysProcAttr)
	}
}

// inForeground reports whether file is our terminal and we are the process group
// that its interrupts go to.
func inForeground(file *os.File) bool {
	var group int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return errno == 0 && int(group) == syscall.Getpgrp()
}

// exitCode is the code of a program, as shells tell it.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
