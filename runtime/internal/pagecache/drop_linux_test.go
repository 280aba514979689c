//go:build amd64 || arm64

package pagecache

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestDrop: a synced file leaves the memory, and is complete when it is read again. A file
// that was not synced stays.
func TestDrop(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !Drop(f) {
		t.Error("an empty file is in memory")
	}
	content := bytes.Repeat([]byte("content"), 100_000)
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	if !resident(f) {
		t.Error("a file that was just written is not in memory")
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if onlyInMemory(f) {
		if Drop(f) {
			t.Error("a file of tmpfs was dropped")
		}
		t.Skip("the folder of temporary files is in memory")
	}
	if !Drop(f) {
		t.Error("a synced file is still in memory")
	}
	mapped, err := syscall.Mmap(int(f.Fd()), 0, len(content), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	if last := mapped[len(mapped)-1]; Drop(f) { // the system keeps a page that a process has mapped
		t.Errorf("a page that is mapped was dropped (%c)", last)
	}
	if err := syscall.Munmap(mapped); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got, content) {
		t.Error("the file has changed", err)
	}
}

// onlyInMemory reports whether a file is in a file system without a disk.
func onlyInMemory(f *os.File) bool {
	var fs syscall.Statfs_t
	const tmpfs = 0x01021994
	return errors.Is(syscall.Fstatfs(int(f.Fd()), &fs), nil) && fs.Type == tmpfs
}
