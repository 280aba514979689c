package launch

import "syscall"

// followParent makes the child drain when we are killed.
func followParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
