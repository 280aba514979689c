// Package failsync shows a test the system calls of a function, and makes them fail. So a test
// finds a sync that is missing, also in a library, without a change of the tested code.
//
//	failsync.Watch(t, failsync.Sync, func(c failsync.Call) error {
//		return syscall.EIO // no sync reaches the disk
//	}, func() {
//		err = log.Save(...) // must return the error
//	})
//
// Watch runs the function on a thread of its own. A seccomp filter of this thread stops each
// system call of the chosen kinds until the test has decided about it. The filter does not
// apply to other threads, so goroutines that the function starts are not watched. It ends
// with the thread.
//
// It needs Linux 5.19 or newer on amd64 or arm64. Elsewhere Watch skips the test in a quick run,
// and fails it at other speeds.
package failsync

import (
	"errors"
	"runtime"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// Kind is a set of kinds of system calls.
type Kind int

// The kinds of system calls.
const (
	Sync   Kind = 1 << iota // fsync, fdatasync, sync_file_range, msync, syncfs, sync
	Read                    // read, pread64, getdents64
	Write                   // write (not of 8 bytes), pwrite64
	Length                  // ftruncate, fallocate
	Name                    // rename and remove; their Call has no path
	Drop                    // fadvise64, which removes a file from the cache
)

// Call is a system call that a function is about to make.
type Call struct {
	Kind Kind
	Path string // of the file or directory; "" if the call does not have a file descriptor
}

// ErrSkip is the decision that a call succeeds without being carried out.
var ErrSkip = errors.New("failsync: the call is not carried out")

// Watch calls f. Before each system call of f of one of the kinds, it calls decide: nil carries
// the call out, [ErrSkip] does not and returns success, and a [syscall.Errno] fails the call. The
// function decide runs in another goroutine than f, while f waits. If f stops the test with
// t.FailNow or t.SkipNow, Watch does the same.
func Watch(t testing.TB, kinds Kind, decide func(Call) error, f func()) {
	t.Helper()
	returned := false
	if err := watch(kinds, decide, func() { f(); returned = true }); err != nil {
		if !speed.IsQuick(t) {
			t.Fatalf("the test cannot watch system calls: %v", err)
		}
		t.Skipf("the test cannot watch system calls: %v", err)
	}
	if !returned {
		runtime.Goexit() // as f did in its goroutine
	}
}
