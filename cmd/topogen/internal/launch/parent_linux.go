package launch

import "syscall"

// followParent makes the child drain when topogen is killed.
func followParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
