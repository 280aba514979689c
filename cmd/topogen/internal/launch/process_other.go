//go:build !unix

package launch

import (
	"os"
	"os/exec"
)

const pipes = false

var stopSignals = []os.Signal{os.Interrupt}

func interrupt(p *os.Process) error { return p.Kill() }

func isolate(*exec.Cmd, bool, bool) {}

func killedBy(*os.ProcessState) os.Signal { return nil }

func exitCode(state *os.ProcessState) int { return state.ExitCode() }
