package nodetests_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/topogen/topogen/internal/test/loopback"
)

// stoppedEffectsMax is how many bytes of effects a process may write after SIGCONT: its calls go on that were running, and
// each worker looks at the clock after 0.1 ms of calls.
const stoppedEffectsMax = 2048

// TestClusterProcessesReplaced stops a process with SIGSTOP, and starts another one under its name, with an empty
// folder and another address. When the first process continues, it calls no handlers, and ends: all messages go
// to the other one.
func TestClusterProcessesReplaced(t *testing.T) {
	t.Parallel() // it waits until the connections of the stopped process end
	unlinked := variableLinks + "=" + direct
	c := start(t, unlinked)
	const one = 2
	first := c.nodes[one]
	c.signal(first, syscall.SIGSTOP)
	first.killed = true // it ends with an error, and has confirmed less than it has handled
	for i := range fleetNodes {
		if i != one {
			c.awaitDead(i, one)
		}
	}
	second := c.launch(one, unlinked, "TOPOGEN_ADDRESS="+loopback.Addresses(c.t, 1)[0], "TOPOGEN_DIR="+c.path("elsewhere"))
	c.await("effects of the second process", func() bool { return c.handled(second) > 0 })
	before := c.handled(first)
	c.signal(first, syscall.SIGCONT)
	if err := c.ended(first); err == nil {
		t.Error("the first process has ended without an error")
	}
	if n := c.handled(first) - before; n > stoppedEffectsMax {
		t.Errorf("the first process has written %d bytes of effects after SIGCONT", n)
	} else {
		t.Logf("the first process has written %d bytes of effects after SIGCONT", n)
	}
	if text := first.output.String(); !strings.Contains(text, `has taken the name "n3"`) {
		t.Errorf("the first process does not say which process has its name: %s", text)
	}
	c.awaitEffects()
	c.finish()
	c.checkAll()
}
