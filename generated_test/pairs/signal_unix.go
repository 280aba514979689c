//go:build unix

package pairs

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// signal kills or stops this process. For Pause it starts a shell that waits until this process is
// stopped, and then continues it. A whole program that is stopped does not continue, but is killed.
func signal(f Failure) {
	s := syscall.SIGSTOP
	switch f {
	case Kill:
		s = syscall.SIGKILL
	case Pause:
		whenStopped("CONT")
	case Stop:
		if plan.Program {
			whenStopped("KILL")
		}
	}
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		panic(err)
	}
	if f != Pause {
		// The signal may arrive after Kill has returned, in another thread. Until then virtual time
		// must stand still: a goroutine that waits for a mutex stops it, unlike an empty select.
		var never sync.Mutex
		never.Lock()
		never.Lock()
	}
}

// whenStopped starts a shell that sends a signal to this process when it is stopped. The shell ends
// when the process is gone.
func whenStopped(name string) {
	if err := exec.Command("sh", "-c", fmt.Sprintf("until grep -q '^State:.T' /proc/%[1]d/status; do [ -d /proc/%[1]d ] || exit; done; kill -%[2]s %[1]d", os.Getpid(), name)).Start(); err != nil {
		panic(err)
	}
}
