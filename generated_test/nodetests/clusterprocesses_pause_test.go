//go:build unix

package nodetests_test

import (
	"syscall"
	"testing"
)

// TestClusterProcessesPausedProcess stops a process with SIGSTOP until the other processes consider it dead.
// After it continues, no message may be lost or handled twice.
func TestClusterProcessesPausedProcess(t *testing.T) {
	t.Parallel()
	c := start(t)
	const one = 2
	c.signal(c.nodes[one], syscall.SIGSTOP)
	for i := range fleetNodes {
		if i != one {
			c.awaitDead(i, one)
		}
	}
	c.signal(c.nodes[one], syscall.SIGCONT)
	c.awaitEffects()
	c.finish()
	c.checkAll()
}
