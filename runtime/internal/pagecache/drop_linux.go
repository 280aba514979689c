//go:build linux && (amd64 || arm64)

package pagecache

import (
	"bytes"
	"os"
	"syscall"
	"unsafe"
)

// Drop removes a synced file from the memory of the operating system. It reports whether
// nothing of the file is left there. The system keeps what was not synced, what a process
// has mapped, and files that exist only in memory.
func Drop(file *os.File) bool {
	const dontNeed = 4 // POSIX_FADV_DONTNEED
	_, _, failed := syscall.Syscall6(syscall.SYS_FADVISE64, file.Fd(), 0, 0, dontNeed, 0, 0)
	return failed == 0 && !resident(file)
}

// resident reports whether the system has a page of a file in memory, or does not say.
func resident(file *os.File) bool {
	info, err := file.Stat()
	if err != nil {
		return true
	}
	if info.Size() == 0 {
		return false
	}
	mapped, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return true
	}
	defer func() { _ = syscall.Munmap(mapped) }() // nothing was written
	pages := make([]byte, (len(mapped)+os.Getpagesize()-1)/os.Getpagesize())
	_, _, failed := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(len(mapped)), uintptr(unsafe.Pointer(&pages[0])))
	for i := range pages {
		pages[i] &= 1 // the other bits are reserved
	}
	return failed != 0 || bytes.IndexByte(pages, 1) >= 0
}
