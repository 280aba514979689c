//go:build unix

// Package processtests_test tests the golden cases with isolation: process. The files of each
// case begin with its name, and its tests too. The tests look at the children of this process,
// so only scenarios, and tests of holds and of unsendable messages, run at the same time.
package processtests_test

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/topogen/topogen/internal/test/child"
	"github.com/topogen/topogen/internal/test/speed"
)

// childParent is a process with a topology, which a test kills.
const childParent = "parent"

func TestMain(m *testing.M) {
	debug.SetMemoryLimit(1 << 30) // a failing test of unsendable could use all memory for an encoding
	// Package os starts a child once to find out what the kernel supports. It must not do so
	// while a test searches for children to kill.
	if _, err := os.FindProcess(os.Getpid()); err != nil {
		panic(err)
	}
	child.Run(map[string]func() error{childParent: runParent})
	speed.Parallel(8, 4) // parallel tests wait more than they compute
	os.Exit(m.Run())
}
