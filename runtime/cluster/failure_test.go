package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/piper"
)

// TestFailureIsPassedOn ends the topology on n1 with an error while no frame passes between
// n1 and n3. The process of n1 is gone soon. So n3 must learn of the failure from n2.
func TestFailureIsPassedOn(t *testing.T) {
	n := newPhaseNodes(t, "n1", "n2", "n3")
	for _, name := range n.nodes {
		n.start(name).open = true
	}
	n.run()
	told := map[string]int{}
	for name, c := range n.cores {
		emit := c.emit
		c.emit = func(to string, f []byte) {
			if cut := name+to == "n1n3" || name+to == "n3n1"; !cut {
				told[name+to]++
				emit(to, f)
			}
		}
	}
	n.cores["n1"].step(n.now, &happened{ended: true, result: errors.New("the disk is full\na stack")})
	n.run()
	if told["n2n3"] == 0 || told["n1n3"] > 0 {
		t.Fatalf("the frames between the nodes are %v, want some from n2 to n3 and none from n1 to n3", told)
	}
	for _, name := range []string{"n2", "n3"} {
		err := n.cores[name].failed
		if !errors.Is(err, ErrNodeFailed) || !strings.HasSuffix(err.Error(), ": node n1: the disk is full") {
			t.Errorf("%s ends with the error %v, want that of n1", name, err)
		}
	}
}

// TestOneNodeFailsAlone ends one node with an error that concerns only this node. The others
// must continue.
func TestOneNodeFailsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		result   error
		left     bool
		finished bool
		external bool
	}{
		"the drain timeout":                                {result: fmt.Errorf("%w after 10s", piper.ErrDrainTimeout)},
		"beside a failed call":                             {result: errors.Join(fmt.Errorf("%w after 10s", piper.ErrDrainTimeout), &piper.HandlerError{Err: errors.New("canceled")})},
		"its address table":                                {result: &nodeError{"n1", errors.New("the disk is full")}},
		"an instance given up":                             {result: piper.ErrGaveUp, left: true},
		"an instance given up, at the end of the topology": {result: piper.ErrGaveUp, finished: true},
		"an instance given up, beside an external one":     {result: piper.ErrGaveUp, finished: true, external: true},
		"Close, at the end of the topology":                {result: errors.New("the file cannot be closed"), finished: true},
	} {
		n := newPhaseNodes(t, "n1", "n2", "n3")
		for _, node := range n.nodes {
			n.start(node).open = true
		}
		n.run()
		n.cores["n1"].left = c.left
		if c.finished {
			n.pools["n1"].groups = []uint8{piper.GroupFinished, piper.GroupFinished}
		}
		if n.pools["n1"].external = c.external; c.external {
			n.pools["n1"].groups[1] = piper.GroupOpen
		}
		n.cores["n1"].step(n.now, &happened{stopping: true, ended: true, result: c.result})
		n.run()
		for _, node := range []string{"n2", "n3"} {
			if err := n.cores[node].failed; err != nil {
				t.Errorf("%s: %s ends with the error %v", name, node, err)
			}
		}
	}
}
