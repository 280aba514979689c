package nodetests_test

import (
	"strings"
	"testing"
	"time"
)

// TestClusterProcessesLinksAreCut cuts and heals links under load. The topology finishes by itself.
func TestClusterProcessesLinksAreCut(t *testing.T) {
	t.Parallel()
	c := start(t)
	for round := range 6 {
		a, b := round%fleetNodes, (round+1+round/fleetNodes)%fleetNodes
		switch round % 3 {
		case 0: // both directions
			c.both(a, b, (*link).cutAll)
			before := c.links[a][b].accepted.Load()
			c.await("a new attempt to connect", func() bool { return c.links[a][b].accepted.Load() > before })
			c.both(a, b, (*link).heal)
		case 1: // one direction
			c.links[a][b].cutAll()
			before := c.links[a][b].accepted.Load()
			c.await("a new attempt to connect", func() bool { return c.links[a][b].accepted.Load() > before })
			c.links[a][b].heal()
		default: // the connections remain, but nothing passes
			c.both(a, b, (*link).stall)
			<-time.After(300 * time.Millisecond) // the duration of the fault
			c.both(a, b, (*link).heal)
		}
		c.awaitEffects()
	}
	// One node loses all its links until the others believe that it is dead.
	for i := range fleetNodes - 1 {
		c.both(i, fleetNodes-1, (*link).cutAll)
	}
	c.awaitDead(0, fleetNodes-1)
	for i := range fleetNodes - 1 {
		c.both(i, fleetNodes-1, (*link).heal)
	}
	c.awaitEffects()
	c.finish()
	c.checkAll()
}

// TestClusterProcessesEndWithoutWarnings: no node logs a warning when a topology ends in order.
func TestClusterProcessesEndWithoutWarnings(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(c *fleet)
	}{
		{"the sources are done", (*fleet).finish},
		{"SIGTERM to all", func(c *fleet) {
			for i := range fleetNodes {
				c.terminate(i)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fleet := start(t, variableLinks+"="+direct)
			var before [fleetNodes]int
			for i, p := range fleet.nodes {
				before[i] = len(p.output.String())
			}
			c.end(fleet)
			fleet.checkAll()
			for i, p := range fleet.nodes {
				for line := range strings.Lines(p.output.String()[before[i]:]) {
					if !strings.Contains(line, "INFO") && !strings.Contains(line, "a handler runs longer") {
						t.Errorf("%s: %s", nodeName(i), line)
					}
				}
			}
		})
	}
}

// TestClusterProcessesAllAreTerminated drains all nodes with SIGTERM, while links are cut.
func TestClusterProcessesAllAreTerminated(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.both(0, 1, (*link).cutAll)
	for i := range fleetNodes {
		c.terminate(i)
	}
	before := c.links[0][1].accepted.Load()
	c.await("a new attempt to connect", func() bool { return c.links[0][1].accepted.Load() > before })
	c.both(0, 1, (*link).heal)
	c.checkAll()
}

// TestClusterProcessesOneIsTerminated drains one node with SIGTERM. It ends after everything that it has
// accepted and sent was handled, and the others go on with each other.
func TestClusterProcessesOneIsTerminated(t *testing.T) {
	t.Parallel() // the nodes wait for retry.timeout, 30 s
	c := start(t)
	const one = 2
	c.terminate(one)
	if err := c.ended(c.nodes[one]); err != nil {
		t.Fatalf("%s: %v", nodeName(one), err)
	}
	for edge, f := range c.figures(c.nodes[one]) {
		if f.Dropped != 0 || f.Len != 0 || f.Waiting != 0 || f.Sent != f.Received {
			t.Errorf("edge %d of the node that has drained: %+v", edge, f)
		}
	}
	for i, p := range c.nodes {
		if i != one {
			if p.hasEnded() {
				t.Errorf("%s has ended too: %v", nodeName(i), p.err)
			}
			c.terminate(i)
		}
	}
	c.checkEnds()
	// Messages for the node that has left are dropped after retry.timeout, and counted.
	for _, flow := range flows[:3] {
		f, e := c.sum(flow.edge), c.effects(flow)
		if f.Received != uint64(len(e.count)) || f.Len != 0 || f.Dropped == 0 {
			t.Errorf("%s: %d effects, but the figures are %+v", flow.to, len(e.count), f)
		}
		t.Logf("%s: %d effects, %+v", flow.to, len(e.count), f)
	}
}
