//go:build unix

package docs_test

import (
	"os/exec"
	"syscall"
	"testing"
)

// runGroup runs a command. When the test ends, it kills processes that the command
// left in the background, because a page that fails in the middle does not stop them.
func runGroup(t *testing.T, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := cmd.Run()
	if cmd.Process == nil || syscall.Kill(-cmd.Process.Pid, 0) != nil {
		return err
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // the page may have stopped them
	return err
}
