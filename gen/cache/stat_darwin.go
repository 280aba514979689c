package cache

import (
	"io/fs"
	"syscall"
)

func statOf(info fs.FileInfo) stat {
	s := stat{size: info.Size(), mtime: info.ModTime().UnixNano()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.ctime = sys.Ctimespec.Nano()
		s.inode, s.dev = sys.Ino, uint64(sys.Dev)
	}
	return s
}
