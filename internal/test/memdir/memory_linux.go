package memdir

import "syscall"

// spaceMin is the free space that a file system in memory must have. The /dev/shm of a container
// often has 64 MiB, which a few logs fill with the space that they allocate in advance.
const spaceMin = 1 << 30

// inMemory returns a folder of a file system in memory with enough space.
func inMemory() (dir string, ok bool) {
	const shared = "/dev/shm"
	var s syscall.Statfs_t
	if err := syscall.Statfs(shared, &s); err != nil {
		return "", false
	}
	return shared, s.Bavail*uint64(s.Bsize) >= spaceMin
}
