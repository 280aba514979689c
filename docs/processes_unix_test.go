//go:build unix

package docs_test

import (
	"os/exec"
	"syscall"
	"testing"
)

// runGroup runs a command. Processes that it leaves in the background are killed when the
// test ends: a page that fails in the middle does not stop them itself.
func runGroup(t *testing.T, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := cmd.Run()
	if cmd.Process == nil || syscall.Kill(-cmd.Process.Pid, 0) != nil {
		return err
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // the page may have stopped them
	return err
}
