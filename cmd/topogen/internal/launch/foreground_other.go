//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package launch

import "os"

// inForeground reports false: package syscall has no ioctl on this system. A program that
// reads from a terminal must be run without topogen.
func inForeground(*os.File) bool { return false }
