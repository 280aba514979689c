package raft_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/ordinary"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestAMemberFileOfAnotherUser: if the node is not permitted to read its record, the error advises to
// grant access, and not to remove the member.
func TestAMemberFileOfAnotherUser(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	record := raft.Record{Topology: "test", Group: "lists", Name: "n1", ID: 1}
	disk, err := raft.OpenFolder(dir, wal.Options{})
	if err == nil {
		err = disk.SetRecord(record)
	}
	if err == nil {
		err = disk.Close()
	}
	if err == nil {
		err = os.Chmod(filepath.Join(dir, "member"), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	ordinary.Run(t, func() {
		if disk, err = raft.OpenFolder(dir, wal.Options{}); err == nil {
			_, err = disk.Record()
			_ = disk.Close() // the error of Record counts
		}
	})
	if text := fmt.Sprint(err); !strings.Contains(text, "permission denied. Give the user that runs this program access") || strings.Contains(text, "raft remove") {
		t.Error(err)
	}
}
