//go:build !linux && !darwin

package cache

import "io/fs"

// statOf has to do without inode and change time: a file whose content changes
// while size and modification time are set back to what they were goes unseen.
func statOf(info fs.FileInfo) stat {
	return stat{Size: info.Size(), Mtime: info.ModTime().UnixNano()}
}
