//go:build unix && !linux

package launch

import "syscall"

// followParent: only Linux tells a child that its parent has died.
func followParent(*syscall.SysProcAttr) {}
