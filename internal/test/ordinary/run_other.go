//go:build !linux

package ordinary

import (
	"os"
	"runtime"
	"testing"
)

// Run calls f. It skips the test if root runs it, or if the system has no permission bits.
func Run(t testing.TB, f func()) {
	t.Helper()
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("this user can read and write everything")
	}
	f()
}
