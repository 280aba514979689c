//go:build unix && !linux

package launch

import "syscall"

// followParent does nothing. Only Linux signals a child when its parent has died.
func followParent(*syscall.SysProcAttr) {}
