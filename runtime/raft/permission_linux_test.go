package raft_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestAMemberFileOfAnotherUser: if the node is not permitted to read its record, the error advises to
// grant access, and not to remove the member.
func TestAMemberFileOfAnotherUser(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "log")
	record := raft.Record{Topology: "test", Group: "lists", Name: "n1", ID: 1}
	disk, err := raft.OpenFolder(dir, wal.Options{})
	if err == nil {
		err = disk.SetRecord(record)
	}
	if err == nil {
		err = disk.Close()
	}
	for path, mode := range map[string]os.FileMode{filepath.Dir(above): 0o755, above: 0o755, dir: 0o777, filepath.Join(dir, "lock"): 0o666, filepath.Join(dir, "member"): 0} {
		if err == nil {
			err = os.Chmod(path, mode)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	err = recordAsNobody(dir)
	if text := fmt.Sprint(err); !strings.Contains(text, "permission denied. Give the user that runs this program access") || strings.Contains(text, "raft remove") {
		t.Error(err)
	}
}

// recordAsNobody reads the record of a folder without the rights that root has.
func recordAsNobody(dir string) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked, so that the thread ends with this goroutine
		if os.Getuid() == 0 {
			if err := syscall.Setfsuid(65534); err != nil {
				done <- err
				return
			}
		}
		disk, err := raft.OpenFolder(dir, wal.Options{})
		if err == nil {
			_, err = disk.Record()
			_ = disk.Close() // the error of Record counts
		}
		done <- err
	}()
	return <-done
}
