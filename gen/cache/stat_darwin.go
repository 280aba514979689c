package cache

import (
	"io/fs"
	"syscall"
)

func statOf(info fs.FileInfo) stat {
	s := stat{Size: info.Size(), Mtime: info.ModTime().UnixNano()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Ctime = sys.Ctimespec.Nano()
		s.Inode, s.Dev = sys.Ino, uint64(sys.Dev)
	}
	return s
}
