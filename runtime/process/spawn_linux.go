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

const memoryEvery = 100 * time.Millisecond // a look costs some 10 µs; a process may take gigabytes between two

// executable is the image that runs, also where the file was replaced since.
func executable() (string, error) { return "/proc/self/exe", nil }

// attributes: a process group of its own, since a terminal's Ctrl-C goes to all of
// a group, and the end together with the thread that starts it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// waitForEnd waits until the process has ended and leaves it to be reaped, so that
// its number is not given to another yet. It reports whether that is so.
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

// watchMemory kills the process when it is larger than it may be, until stop is
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

// residentSize of a process in bytes; 0 of one that has ended.
func residentSize(pid int) int64 {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if fields := strings.Fields(string(text)); len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}
