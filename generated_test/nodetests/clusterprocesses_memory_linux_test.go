package nodetests_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/clusterprocesses"
	"github.com/topogen/topogen/internal/test/speed"
)

// rss returns the resident memory of a process in MiB.
func (c *fleet) rss(p *fleetProcess) (mib int) {
	c.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(b), "VmRSS:")
	if _, err := fmt.Sscan(line, &mib); err != nil {
		c.t.Fatal(err)
	}
	return mib >> 10
}

// memoryMax bounds the memory of each process in MiB. A process that has all queues full
// needs about a third of it.
const memoryMax = 128

// TestClusterProcessesSlowReceiver runs sources that are far more than ten times as fast as the workers of
// one node, for some time. The sources pause, so the memory of all processes is bounded and
// nothing is lost.
func TestClusterProcessesSlowReceiver(t *testing.T) {
	t.Parallel()
	c := prepare(t, fleetNodes)
	const slow = 1
	for i := range fleetNodes {
		if i == slow {
			c.launch(i, clusterprocesses.VariablePause+"=1ms")
		} else {
			c.launch(i)
		}
	}
	c.awaitStart()
	largest := 0
	end := time.After(speed.Pick(t, 0, 2*time.Second, time.Minute))
	for running := true; running; {
		select {
		case <-end:
			running = false
		case <-time.After(50 * time.Millisecond): // between two measurements
			for _, p := range c.nodes {
				largest = max(largest, c.rss(p))
			}
		}
	}
	t.Logf("largest process: %d MiB", largest)
	if largest > memoryMax {
		t.Errorf("a process has needed %d MiB, want at most %d", largest, memoryMax)
	}
	c.awaitEffects()
	c.finish()
	c.checkAll()
}
