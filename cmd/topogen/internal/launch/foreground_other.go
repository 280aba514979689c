//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package launch

import "os"

// inForeground reports false: package syscall has no ioctl here. A program that reads
// from a terminal must be run by itself.
func inForeground(*os.File) bool { return false }
