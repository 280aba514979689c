//go:build unix

package launch

import (
	"os"
	"os/exec"
	"syscall"
)

// pipes reports that a child can inherit more files than the standard streams.
const pipes = true

var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

func interrupt(p *os.Process) error { return p.Signal(os.Interrupt) }

// isolate prepares a signalled child, which has no pipe to topogen. The child gets its own
// process group, unless it must stay in the foreground, and a signal when topogen dies.
func isolate(cmd *exec.Cmd, signalled, foreground bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: signalled && !foreground}
	if signalled {
		followParent(cmd.SysProcAttr)
	}
}

// killedBy returns the signal that has ended a program, or nil.
func killedBy(state *os.ProcessState) os.Signal {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal()
	}
	return nil
}

// exitCode returns the exit code of a program as shells define it.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
