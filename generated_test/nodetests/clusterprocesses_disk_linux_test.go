package nodetests_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// diskBytes is the size of the disk of a node: room for the log of its address table, which
// takes its room when it is made.
const diskBytes = "90m"

// disk makes a small disk for a node. It needs the right to mount.
func (c *fleet) disk(dir string) {
	c.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+diskBytes); errors.Is(err, syscall.EPERM) {
		c.t.Skip("this user may not mount a small disk")
	} else if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			c.t.Error(err)
		}
	})
}

// fill leaves no room on the disk of a file.
func (c *fleet) fill(path string) {
	c.t.Helper()
	file, err := os.Create(path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	for b := make([]byte, 1<<20); len(b) > 0; {
		if _, err := file.Write(b); errors.Is(err, syscall.ENOSPC) {
			b = b[:len(b)/2]
		} else if err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestClusterProcessesFullDisk fills the disk of a node. Its log has its room already, so it continues while
// the address table changes. A process that must make a new log ends and says why. When the
// disk has room again, the next one gets the messages that wait for it.
func TestClusterProcessesFullDisk(t *testing.T) {
	t.Parallel()
	c := prepare(t, fleetNodes)
	const one, other = 2, 0
	disk := c.path("disk")
	c.disk(disk)
	dir := "TOPOGEN_DIR=" + disk
	for i := range fleetNodes {
		if i == one {
			c.launch(i, dir)
		} else {
			c.launch(i)
		}
	}
	c.awaitStart()
	filler := filepath.Join(disk, "filler")
	c.fill(filler)
	c.kill(other) // its start changes the table
	c.launch(other)
	c.awaitEffects()

	c.kill(one)
	if err := os.RemoveAll(filepath.Join(disk, nodeName(one))); err != nil {
		t.Fatal(err)
	}
	more := filepath.Join(disk, "more")
	c.fill(more)
	p := c.launch(one, dir)
	p.killed = true // it has no figures
	if err := c.ended(p); err == nil {
		t.Error("the process with a full disk has ended without an error")
	}
	c.awaitOutput(p, "no space left on device")
	if err := errors.Join(os.Remove(filler), os.Remove(more)); err != nil {
		t.Fatal(err)
	}
	c.launch(one, dir)
	c.awaitEffects()
	c.finish()
	c.checkAll()
}
