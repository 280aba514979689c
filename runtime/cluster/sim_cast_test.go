package cluster

import (
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/transport"
)

// checkPlaces checks the nodes to which messages for all nodes are sent: there are at most Config.Neighborhood, and no node waits while one is free.
func (n *simNode) checkPlaces() {
	most := n.core.config.Neighborhood
	casts := map[*cast]bool{}
	for p := range n.core.nodes() {
		for _, pair := range p.out {
			if e, ok := pair.to.(*castEnd); ok {
				casts[e.cast] = true
			}
		}
	}
	for c := range casts {
		placed, busy := 0, 0
		for _, e := range c.ends {
			if e.placed {
				placed++
			}
			if e.pair.shared > 0 && e.pair.peer.takes() {
				busy++
			}
			if p := e.pair; p.handed < len(p.kept) && !e.queued && !p.waiting && !(e.placed && len(c.queue) > 0) && !p.peer.session.Waits() {
				n.sim.fault("%s: messages for all nodes wait for nothing", n.name)
			}
		}
		switch {
		case placed != c.placed || most > 0 && placed > most:
			n.sim.fault("%s: messages for all nodes are sent to %d nodes at a time, counted as %d, and the limit is %d", n.name, placed, c.placed, most)
		case len(c.queue) > 0 && placed < most:
			n.sim.fault("%s: %d nodes wait for messages for all nodes, and %d of %d places are in use", n.name, len(c.queue), placed, most)
		case len(c.queue) > 0:
			n.sim.counts["nodes that wait for a place"]++
		}
		n.sim.casts = max(n.sim.casts, busy)
	}
}

// castDesign is a topology of seven nodes: an instance on n1 sends to the instances of all
// nodes.
func castDesign() *design {
	d := &design{nodes: 7, messages: 60, batch: 4, parts: []designPart{
		{name: "p0", instances: 1, source: true, placement: OnNode, node: "n1", with: 0},
		{name: "p1", instances: 2, placement: EveryNode, with: 1},
	}, edges: []designEdge{{from: 0, to: 1, capacity: 8}}}
	d.groups = d.components()
	return d
}

// TestNeighborhood sends messages to the instances of all nodes. They are on their way to at
// most so many nodes at a time as the neighborhood has.
func TestNeighborhood(t *testing.T) {
	for _, neighborhood := range []int{1, 2, 5, 0} {
		d := castDesign()
		d.parts[0].load = 8 << 10 // the buffers of large chunks are used again
		s := simulate(1, d)
		s.config.Neighborhood = neighborhood
		s.net.SetFaults(transport.Faults{DelayMin: int64(time.Millisecond), DelayMax: int64(time.Millisecond), Ordered: true})
		s.run()
		if f := s.failure(); f != "" {
			t.Errorf("neighborhood %d: %s", neighborhood, f)
		}
		want := neighborhood
		if want == 0 {
			want = 6
		}
		if waited := s.counts["nodes that wait for a place"] > 0; s.casts != want || waited != (neighborhood > 0) {
			t.Errorf("neighborhood %d: messages were on their way to %d nodes at a time; some waited: %v", neighborhood, s.casts, waited)
		}
	}
}

// TestLostNodesHoldNoPlace lets a node end while it has the only place of a neighborhood.
// When it cannot be reached, the other nodes get their messages, long before retry.timeout.
func TestLostNodesHoldNoPlace(t *testing.T) {
	d := castDesign()
	d.messages, d.edges[0].capacity = 1000, 64
	s := simulate(1, d)
	s.net.SetFaults(transport.Faults{DelayMin: int64(time.Millisecond), DelayMax: int64(time.Millisecond), Ordered: true})
	s.config.Neighborhood, s.config.Retry.Timeout = 1, 10*time.Minute
	handled := 0
	s.onReceived = func(int, *parcel) {
		if handled++; handled == 3000 { // all sessions have begun
			s.nodes[1].frozen = true
		}
	}
	waiting := func() (lost, others int) {
		for p := range s.nodes[0].core.nodes() {
			for _, pair := range p.out {
				e, ok := pair.to.(*castEnd)
				switch {
				case !ok || len(e.kept) == 0:
				case p.name == "n2":
					lost++
				default:
					others++
				}
			}
		}
		return lost, others
	}
	s.at(time.Minute, "n1 cannot reach n2", func() {
		if lost, others := waiting(); lost != 1 || others == 0 {
			t.Errorf("while n2 has the place, messages wait for it: %d, and for %d others", lost, others)
		}
		s.nodes[0].report(s.nodes[1], false)
	})
	s.at(2*time.Minute, "check", func() {
		if lost, others := waiting(); lost != 1 || others != 0 {
			t.Errorf("messages wait for the lost node: %d, and for %d others", lost, others)
		}
		s.until = 0 // the end of the other nodes does not matter
	})
	s.run()
}
