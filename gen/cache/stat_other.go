//go:build !linux && !darwin

package cache

import "io/fs"

// statOf has no inode and no change time on this system. It does not notice a change of the
// contents if size and modification time stay the same.
func statOf(info fs.FileInfo) stat {
	return stat{Size: info.Size(), Mtime: info.ModTime().UnixNano()}
}
