//go:build !unix

package docs_test

import (
	"os/exec"
	"testing"
)

// runGroup runs a command.
func runGroup(_ *testing.T, cmd *exec.Cmd) error { return cmd.Run() }
