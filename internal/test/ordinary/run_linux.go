package ordinary

import (
	"errors"
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

// Run calls f. If root runs the test, f is still the owner of the files of root, but the
// permission bits of files apply to it. This does not apply to goroutines that f starts. If f
// stops the test with t.FailNow or t.SkipNow, Run does the same.
func Run(t testing.TB, f func()) {
	t.Helper()
	returned := false
	done := make(chan error)
	go func() {
		defer close(done)
		runtime.LockOSThread() // not unlocked, so that the thread ends with this goroutine
		if err := dropCapabilities(); err != nil {
			done <- err
			return
		}
		f()
		returned = true
	}()
	if err := <-done; err != nil {
		t.Fatal("the test cannot give up the rights of root: ", err)
	}
	if !returned {
		runtime.Goexit() // as f did in its goroutine
	}
}

// dropCapabilities makes no capability of this thread effective.
func dropCapabilities() error {
	const version3 = 0x20080522
	header := struct {
		version uint32
		thread  int32 // 0: this thread
	}{version: version3}
	var data [2]struct{ effective, permitted, inheritable uint32 }
	_, _, got := syscall.RawSyscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data)), 0)
	data[0].effective, data[1].effective = 0, 0
	_, _, set := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data)), 0)
	return errors.Join(failure(got), failure(set))
}

func failure(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
