//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package filelock

import "os"

// Share does nothing: the lock that bbolt takes when it opens the file must suffice.
func Share(*os.File) (bool, error) { return true, nil }
