//go:build unix

package regular

import (
	"io/fs"
	"syscall"
)

// noFollow makes [os.OpenFile] fail for a symbolic link.
const noFollow = syscall.O_NOFOLLOW

// names returns the number of names of a file.
func names(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}
