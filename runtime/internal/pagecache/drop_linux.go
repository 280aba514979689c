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
func Drop(file *os.File) bool { return advise(file) && !resident(file) }

// TryDrop is Drop without the report, which takes seconds for a sparse file of 100 GiB.
func TryDrop(file *os.File) { advise(file) }

// advise reports whether the system has accepted the advice.
func advise(file *os.File) bool {
	const dontNeed = 4 // POSIX_FADV_DONTNEED
	_, _, failed := syscall.Syscall6(syscall.SYS_FADVISE64, file.Fd(), 0, 0, dontNeed, 0, 0)
	return failed == 0
}

// resident reports whether the system has a page of a file in memory, or does not say.
func resident(file *os.File) bool {
	info, err := file.Stat()
	if err != nil {
		return true
	}
	for at := int64(0); at < info.Size(); at += windowBytes {
		if residentWindow(file, at, int(min(windowBytes, info.Size()-at))) {
			return true
		}
	}
	return false
}

// windowBytes is the part of a file that is looked at, so that a large file takes little
// memory.
const windowBytes = 1 << 30

func residentWindow(file *os.File, at int64, length int) bool {
	mapped, err := syscall.Mmap(int(file.Fd()), at, length, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return true
	}
	defer func() { _ = syscall.Munmap(mapped) }() // nothing was written
	pages := make([]byte, (length+os.Getpagesize()-1)/os.Getpagesize())
	_, _, failed := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(length), uintptr(unsafe.Pointer(&pages[0])))
	for i := range pages {
		pages[i] &= 1 // the other bits are reserved
	}
	return failed != 0 || bytes.IndexByte(pages, 1) >= 0
}
