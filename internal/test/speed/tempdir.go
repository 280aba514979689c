package speed

import (
	"os"
	"testing"
)

// memory is a folder of Linux whose files are in memory.
const memory = "/dev/shm"

// TempDir returns a new folder, which is removed after the test. In a quick run its files are in
// memory if the system has a folder for that, so that syncs take no time.
func TempDir(t testing.TB) string {
	t.Helper()
	if !IsQuick(t) {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "topogen-")
	if err != nil { // another system, or another user's
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the folder of the test: %v", err)
		}
	})
	return dir
}
