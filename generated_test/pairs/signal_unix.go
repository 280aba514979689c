//go:build unix

package pairs

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// signal kills or stops this process. For Pause it starts a shell that waits until this process is
// stopped, and then continues it.
func signal(f Failure) {
	s := syscall.SIGSTOP
	switch f {
	case Kill:
		s = syscall.SIGKILL
	case Pause:
		if err := exec.Command("sh", "-c", fmt.Sprintf("while ! grep -q '^State:.T' /proc/%d/status; do :; done; kill -CONT %[1]d", os.Getpid())).Start(); err != nil {
			panic(err)
		}
	}
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		panic(err)
	}
	if f != Pause {
		select {} // the signal may arrive after Kill has returned, in another thread
	}
}
