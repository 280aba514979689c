package cluster

import (
	"testing"
	"time"
)

// TestIdleNodeEnds stops one of three idle nodes that have sockets and disks, and logs how long that takes.
// TestIdleNodeLeavesSoon has the limit, in virtual time.
func TestIdleNodeEnds(t *testing.T) {
	t.Parallel() // it waits for other nodes
	p := newProgram()
	p.gated = true
	tops := p.onHosts(t, 3)
	stop, wait := runEach(t, tops)
	for _, top := range tops {
		awaitNode(t, top.node, "all nodes", func(v *View) bool {
			found := 0
			for _, n := range v.Nodes {
				if n.Found && n.Reachable {
					found++
				}
			}
			return v.State == stateRunning && found == len(tops)
		})
	}
	began := time.Now()
	stop[1]()
	wait(1)
	t.Logf("the node has ended after %v", time.Since(began)) // 0.3 s if no other program runs
	stop[0]()
	stop[2]()
	wait(0)
	wait(2)
}
