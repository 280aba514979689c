package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const memoryEvery = 100 * time.Millisecond // a check costs some 10 µs; a process may allocate gigabytes between two

// executable returns the running image, even if the file was replaced since.
func executable() (string, error) { return "/proc/self/exe", nil }

// attributes puts the process into its own process group, because Ctrl-C on a terminal
// goes to a whole group, and makes the kernel kill it when the thread that started it
// ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// waitForEnd waits until the process has ended but does not reap it, so that its process
// ID is not reused yet. It reports whether that worked.
func waitForEnd(pid int) bool {
	const byPID, exited, noReap = 1, 4, 0x01000000 // P_PID, WEXITED, WNOWAIT
	for {
		var info [128]byte // siginfo_t
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid), uintptr(unsafe.Pointer(&info)), exited|noReap, 0, 0)
		if errno != syscall.EINTR {
			return errno == 0
		}
	}
}

// watchMemory kills the process when its resident size exceeds the limit, until stop is
// called.
func (c *Child) watchMemory() (stop func()) {
	if c.settings.Memory <= 0 {
		return func() {}
	}
	stopped := make(chan struct{})
	go func() {
		ticker := time.NewTicker(memoryEvery)
		defer ticker.Stop()
		for {
			if size := residentSize(c.PID()); size > c.settings.Memory {
				c.kill(fmt.Errorf("%w: %d bytes, limit %d", ErrMemory, size, c.settings.Memory))
			}
			select {
			case <-ticker.C:
			case <-stopped:
				return
			}
		}
	}()
	return func() { close(stopped) }
}

// residentSize returns the resident size of a process in bytes, or 0 if it has ended.
func residentSize(pid int) int64 {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if fields := strings.Fields(string(text)); len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}
