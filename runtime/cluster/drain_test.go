package cluster

import (
	"testing"
	"time"
)

// TestIdleNodeEndsSoon stops one of three idle nodes that have sockets and disks.
func TestIdleNodeEndsSoon(t *testing.T) {
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
	took := time.Since(began)
	t.Logf("the node has ended after %v", took)
	if took >= leaveAfter { // 0.3 s if no other program runs
		t.Errorf("an idle node has ended after %v, want less than %v", took, leaveAfter)
	}
	stop[0]()
	stop[2]()
	wait(0)
	wait(2)
}
