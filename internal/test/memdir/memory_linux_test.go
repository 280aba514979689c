package memdir

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestLittleMemory: New takes a folder on the disk if /dev/shm has only 64 MiB, and a folder in
// /dev/shm if it has enough.
func TestLittleMemory(t *testing.T) {
	for size, inMemory := range map[int]bool{64 << 20: false, spaceMin: true} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var dir string
			if err := withMemory(size, func() { dir = New(t) }); err != nil {
				t.Skipf("needs permission to mount: %v", err)
			}
			if got := strings.HasPrefix(dir, "/dev/shm/"); got != inMemory && !strings.HasPrefix(os.TempDir(), "/dev/shm") {
				t.Errorf("got %s", dir)
			}
		})
	}
}

// withMemory calls f on a thread whose /dev/shm has the given size.
func withMemory(size int, f func()) error {
	done := make(chan error)
	go func() {
		defer close(done)
		runtime.LockOSThread() // not unlocked, so that the thread and its mounts end with this goroutine
		err := syscall.Unshare(syscall.CLONE_NEWNS)
		if err == nil {
			err = syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
		}
		if err == nil {
			err = syscall.Mount("tmpfs", "/dev/shm", "tmpfs", 0, fmt.Sprintf("size=%d", size))
		}
		if err != nil {
			done <- err
			return
		}
		f()
	}()
	return <-done
}
